/** The pages that the server writes itself: no inline script or style, nothing from another origin. */
import { errorTable } from '../contracts/errors.ts';

function page(title: string, head: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
${head}
</head>
<body>
${body}
</body>
</html>
`;
}

export const apiPage = page(
  'Capstan API',
  '<link rel="stylesheet" href="/docs/swagger-ui.css">',
  `<div id="api"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/init.js"></script>`,
);

export const initScript = `SwaggerUIBundle({
  url: '/v1/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  validatorUrl: null,
  persistAuthorization: false,
});
`;

export const missingConsolePage = page(
  'Capstan',
  '<meta http-equiv="refresh" content="2">',
  `<h1>The console is being built</h1>
<p>This page tries again by itself. Meanwhile: <a href="/docs">the API</a>.</p>`,
);

function errorRow([code, { status, retryable, meaning }]: [string, (typeof errorTable)['internal']]): string {
  return `<tr id="${code}"><td><code>${code}</code></td><td>${status}</td><td>${retryable ? 'yes' : 'no'}</td><td>${meaning}</td></tr>`;
}

export const errorsPage = page(
  'Capstan errors',
  '',
  `<h1>Errors</h1>
<p>Every error is <code>application/problem+json</code>; its <code>code</code> is one of these.</p>
<table>
<thead><tr><th>Code</th><th>Status</th><th>May succeed later</th><th>Meaning</th></tr></thead>
<tbody>
${Object.entries(errorTable).map(errorRow).join('\n')}
</tbody>
</table>`,
);
