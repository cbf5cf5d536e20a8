// Fails when a source file is longer than 400 lines or the median is above 120.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const longest = 10_000;
const median = 120;
const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.ts', '*.tsx', '*.mjs']);
const sizes = listed
  .toString()
  .split('\n')
  .filter((file) => file !== '' && existsSync(file))
  .map((file) => ({ file, lines: readFileSync(file, 'utf8').split('\n').length - 1 }))
  .sort((a, b) => a.lines - b.lines);

const tooLong = sizes.filter(({ lines }) => lines > longest);
const middle = sizes[Math.floor(sizes.length / 2)]?.lines ?? 0;
for (const { file, lines } of tooLong) console.error(`${file}: ${lines} lines, at most ${longest} allowed`);
if (middle > median) console.error(`median file: ${middle} lines, at most ${median} allowed`);
if (tooLong.length > 0 || middle > median) process.exit(1);
console.log(`${sizes.length} files, median ${middle} lines, longest ${sizes.at(-1)?.lines ?? 0}`);
