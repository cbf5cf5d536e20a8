// Fails when the median of the source files is above 120 lines.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const highestMedian = 120;
const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.ts', '*.tsx', '*.mjs']);
const sizes = listed
  .toString()
  .split('\n')
  .filter((file) => file !== '' && existsSync(file))
  .map((file) => readFileSync(file, 'utf8').split('\n').length - 1)
  .sort((a, b) => a - b);

const median = sizes[Math.floor(sizes.length / 2)] ?? 0;
if (median > highestMedian) {
  console.error(`median file: ${median} lines, at most ${highestMedian} allowed`);
  process.exit(1);
}
console.log(`${sizes.length} files, median ${median} lines, longest ${sizes.at(-1) ?? 0}`);
