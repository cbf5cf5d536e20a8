/** The commit-msg hook: refuses a subject that leaves the form `type(scope): imperative`. */
import { readFileSync } from 'node:fs';
import { findSubjectFault, types } from './commit-subject.ts';

const [file = ''] = process.argv.slice(2);
const lines = readFileSync(file, 'utf8').split('\n');
const subject = lines.find((line) => line.trim() !== '' && !line.startsWith('#')) ?? '';
const fault = findSubjectFault(subject);
if (fault !== null) {
  console.error(
    `${subject}\n${fault}\nA subject is type(scope): imperative, such as "fix(api): refuse an empty key".`,
  );
  console.error(`Types are ${types.join(', ')}.`);
  process.exit(1);
}
