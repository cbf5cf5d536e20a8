/** The last part of `npm run build`: the workflow bundle, where a compiled worker looks for it. */
import { writeFile } from 'node:fs/promises';
import { builtBundleName, bundleWorkflows } from '../src/processes/bundle-workflows.ts';

await writeFile(new URL(`../dist/src/${builtBundleName}`, import.meta.url), await bundleWorkflows());
