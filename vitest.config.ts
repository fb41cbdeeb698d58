import { defineConfig } from 'vitest/config';
import { filesBeside, workers } from './test/support/beside.ts';

const integration = {
  globalSetup: ['test/support/build-setup.ts', 'test/support/engine-setup.ts'],
  testTimeout: 120_000,
  hookTimeout: 180_000,
  expect: { poll: { timeout: 10_000 } },
};

// Three kinds of test: `unit` touches nothing outside the process but temporary files, `integration` drives real parts one file at
// a time, but for `integration-beside`, whose files run beside each other; `system` boots a real systemd.
export default defineConfig({
  test: {
    globals: false,
    restoreMocks: true,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 20_000,
          // One of them builds.
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          exclude: filesBeside,
          fileParallelism: false,
          ...integration,
        },
      },
      {
        test: {
          name: 'integration-beside',
          include: filesBeside,
          maxWorkers: workers,
          sequence: { groupOrder: 1 },
          ...integration,
        },
      },
      {
        test: {
          name: 'system',
          include: ['test/system/**/*.test.ts'],
          globalSetup: ['test/support/system-setup.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
          fileParallelism: false,
        },
      },
    ],
    coverage: {
      provider: 'v8',
      include: [
        'src/**/plan.ts',
        'src/**/args.ts',
        'src/**/parse.ts',
        'src/lib/cluster/*.ts',
        'src/lib/ploy/*.ts',
        'src/lib/deploy-runner/*.ts',
      ],
    },
  },
});
