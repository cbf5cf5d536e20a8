/** `npm run test:mutants`. */

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { coreFolders, tryCoreMutants } from './mutants/core-mutants.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    json: { type: 'string' },
  },
});
const trials = await tryCoreMutants({
  folders: values.only?.split(',') ?? coreFolders,
  sample: values.sample === undefined ? null : Number(values.sample),
  seed: Number(values.seed),
});
if (values.json) writeFileSync(values.json, JSON.stringify(trials, null, 1));
for (const t of trials) if (t.end === 'survived') console.log(`${t.file}:${t.line} ${t.label}`);
