/**
 * A program of its own: bundles the workflows of the sources into the file in its first argument. `npm run build` puts
 * it where a compiled worker looks for it, and the embedded stack of a checkout where it likes.
 */
import { writeFile } from 'node:fs/promises';
import { bundleWorkflows } from './bundle-workflows.ts';

const [file = ''] = process.argv.slice(2);
await writeFile(file, await bundleWorkflows());
