import { defineConfig } from 'vitest/config';
import {
  filesBeside,
  filesInFirstLane,
  filesInSecondLane,
  filesMeasured,
  systemFilesBeside,
  systemFilesMeasured,
  workers,
} from './test/support/beside.ts';

const integration = {
  globalSetup: ['test/support/build-setup.ts', 'test/support/engine-setup.ts'],
  testTimeout: 120_000,
  hookTimeout: 180_000,
  expect: { poll: { timeout: 10_000 } },
};

const system = {
  globalSetup: ['test/support/system-setup.ts'],
  testTimeout: 300_000,
  hookTimeout: 300_000,
};

// Three kinds of test: `unit` touches nothing outside the process but temporary files, `integration` drives real parts, `system` boots
// a real systemd. What runs beside what is in test/support/beside.ts; scripts/test runs the two lanes at the same time.
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
          name: 'integration-beside',
          include: filesBeside,
          maxWorkers: workers,
          sequence: { groupOrder: 1 },
          ...integration,
        },
      },
      ...(
        [
          ['integration-first', filesInFirstLane],
          ['integration-second', filesInSecondLane],
          ['integration-measured', filesMeasured],
        ] as const
      ).map(([name, include], index) => ({
        test: {
          ...{ name, include: [...include], fileParallelism: false, sequence: { groupOrder: 2 + index } },
          ...integration,
        },
      })),
      {
        test: {
          name: 'system-beside',
          include: systemFilesBeside,
          maxWorkers: 2,
          sequence: { groupOrder: 5 },
          ...system,
        },
      },
      {
        test: {
          name: 'system',
          include: systemFilesMeasured,
          fileParallelism: false,
          sequence: { groupOrder: 6 },
          ...system,
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
