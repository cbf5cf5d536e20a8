// Copies the files of Swagger UI that the server shows at /docs into dist/, beside the code that reads them, with its
// licence. So the published package does not depend on Swagger UI's own, which reports each install to its makers.
import { copyFileSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
const target = fileURLToPath(new URL('../dist/src/api/documents/swagger-ui/', import.meta.url));
mkdirSync(target, { recursive: true });
for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png', 'LICENSE', 'NOTICE']) {
  copyFileSync(join(source, name), join(target, name));
}
