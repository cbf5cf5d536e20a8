// Copies what is not compiled into dist/, beside the code that reads it.
import { copyFileSync, cpSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// The tables and functions of the database.
const isRead = (path) => ['', '.sql'].includes(extname(path));
const [database, compiled] = ['src/db', 'dist/src/db'].map((folder) =>
  fileURLToPath(new URL(`../${folder}`, import.meta.url)),
);
cpSync(database, compiled, { recursive: true, filter: isRead });

// The price book of models, with the licences of its catalogues.
const money = 'packages/wrap/src/models/money';
for (const name of ['price-book.json', 'price-book.LICENSES']) {
  const [book, compiledBook] = [money, `dist/${money}`].map((folder) =>
    fileURLToPath(new URL(`../${folder}/${name}`, import.meta.url)),
  );
  copyFileSync(book, compiledBook);
}

// The files of Swagger UI that the server shows at /docs, with its licence. So the published package does not depend on
// Swagger UI's own, which reports each install to its makers.
const source = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
const target = fileURLToPath(new URL('../dist/src/api/documents/swagger-ui/', import.meta.url));
mkdirSync(target, { recursive: true });
for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png', 'LICENSE', 'NOTICE']) {
  copyFileSync(join(source, name), join(target, name));
}
