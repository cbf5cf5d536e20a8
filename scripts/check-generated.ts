/**
 * The first part of `npm run check`, with `--check`: writes the types of the API, which the compiler needs, and compares
 * the generated pages. One process, because both load all routes.
 */
import { writeApiTypes } from './console/api-types.ts';

await writeApiTypes();
await import('./generate-docs.ts');
