import { defineConfig } from 'vitest/config';

// Three kinds of test: `unit` touches nothing outside the process but temporary files,
// `integration` drives real parts one file at a time, `system` boots a real systemd.
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
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/support/build-setup.ts', 'test/support/engine-setup.ts'],
          testTimeout: 120_000,
          hookTimeout: 180_000,
          fileParallelism: false,
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
