// Before the integration tests: an engine with the demo images for each file that runs at a time. After them: nothing of it is left.
import type { TestProject } from 'vitest/node';
import {
  buildImages,
  type EngineDirectory,
  engineDirectory,
  startEngine,
  stopEngine,
  sweepEngines,
} from './engine.ts';

const directories: EngineDirectory[] = [];

export function setup(project: TestProject): void {
  sweepEngines();
  const { maxWorkers } = project.config;
  for (let worker = 1; worker <= maxWorkers; worker += 1) {
    directories.push(engineDirectory(maxWorkers === 1 ? 'run' : `run${worker}`));
  }
  const sockets = directories.map((directory) => {
    const socket = startEngine(directory);
    buildImages(socket);
    return socket;
  });
  project.provide('engineSockets', sockets);
}

export function teardown(): void {
  for (const directory of directories) stopEngine(directory);
}
