// Prints "PASSED FAILED SKIPPED" from vitest's JSON report. A file that could not be run at all counts as one failure.
// With --failed: the files that something failed in, one a line, as paths from here.
// With --slowest: the ten files that took longest, with their seconds.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

const [path, mode] = process.argv.slice(2);
const report = JSON.parse(readFileSync(path, 'utf8'));
const failed = report.testResults.filter(({ status }) => status === 'failed');
if (mode === '--failed') {
  for (const { name } of failed) console.log(relative(process.cwd(), name));
} else if (mode === '--slowest') {
  const took = report.testResults.map(({ name, startTime, endTime }) => ({
    name: relative(process.cwd(), name),
    seconds: Math.round((endTime - startTime) / 1000),
  }));
  for (const { name, seconds } of took.sort((a, b) => b.seconds - a.seconds).slice(0, 10)) {
    console.log(`${String(seconds).padStart(5)} s  ${name}`);
  }
} else {
  const unrun = failed.filter(
    ({ assertionResults }) => !assertionResults.some((test) => test.status === 'failed'),
  );
  const skipped = report.numPendingTests + (report.numTodoTests ?? 0);
  console.log(`${report.numPassedTests} ${report.numFailedTests + unrun.length} ${skipped}`);
}
