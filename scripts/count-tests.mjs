// Prints "PASSED FAILED SKIPPED" from vitest's JSON report. A file that could not be run at all counts as one failure.
// With --failed: the files that something failed in, one a line, as paths from here.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

const [path, mode] = process.argv.slice(2);
const report = JSON.parse(readFileSync(path, 'utf8'));
const failed = report.testResults.filter(({ status }) => status === 'failed');
if (mode === '--failed') {
  for (const { name } of failed) console.log(relative(process.cwd(), name));
} else {
  const unrun = failed.filter(
    ({ assertionResults }) => !assertionResults.some((test) => test.status === 'failed'),
  );
  const skipped = report.numPendingTests + (report.numTodoTests ?? 0);
  console.log(`${report.numPassedTests} ${report.numFailedTests + unrun.length} ${skipped}`);
}
