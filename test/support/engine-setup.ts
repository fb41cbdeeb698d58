// Before the integration tests: an engine with the demo images. After them: nothing of it is left.
import type { TestProject } from 'vitest/node';
import { buildImages, engineDirectory, startEngine, stopEngine, sweepEngines } from './engine.ts';

const directory = engineDirectory('run');

export function setup(project: TestProject): void {
  sweepEngines();
  const socket = startEngine(directory);
  buildImages(socket);
  project.provide('engineSocket', socket);
}

export function teardown(): void {
  stopEngine(directory);
}
