// The strict server of ploy in a process of its own.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { PloyOrder } from '../programs/ploy-server.ts';
import type { Pki } from './pki.ts';

export type PloyProcess = {
  readonly url: string;
  readonly token: string;
  readonly nodeId: string;
  order(order: PloyOrder): Promise<unknown>;
  stop(): Promise<void>;
};

const program = fileURLToPath(new URL('../programs/ploy-server.ts', import.meta.url));

export async function startPloyProcess(pki?: Pki): Promise<PloyProcess> {
  const files = pki === undefined ? [] : [JSON.stringify({ server: pki.server, ca: pki.ca })];
  const child = spawn(process.execPath, [program, ...files], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('close', resolve));
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve);
    child.once('close', () => reject(new Error('the server did not start')));
  });
  const { adminUrl, ...about } = JSON.parse(line) as Omit<PloyProcess, 'order' | 'stop'> & {
    adminUrl: string;
  };
  return {
    ...about,
    order: async (order) => {
      const response = await fetch(adminUrl, { method: 'POST', body: JSON.stringify(order) });
      if (!response.ok) throw new Error(await response.text());
      return await response.json();
    },
    stop: async () => {
      child.stdin.end();
      await ended;
    },
  };
}
