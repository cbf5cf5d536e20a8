/** Writes packages/client/src/api-types.d.ts, and copies it into the folder of a build, which tsc leaves without it. */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { apiTypesFile, writeApiTypes } from './api-types.ts';

await writeApiTypes();
const [build] = process.argv.slice(2);
if (build !== undefined) await cp(apiTypesFile, join(build, 'packages/client/src/api-types.d.ts'));
