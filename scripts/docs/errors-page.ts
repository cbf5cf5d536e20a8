import { type ErrorCode, errorTable } from '@capstan/core/contracts/errors';
import { code, createPage, formatTable, type Page } from './page.ts';

const introduction = `
Every error answer of the API is \`application/problem+json\` (RFC 9457): \`{type, title, status, detail, instance,
code, errors?[{pointer, code, message, suggestion?, line?, column?}], request_id}\`. \`code\` is always a code of this
table. The \`error.code\` of runs, steps and attempts, and the failure types in Temporal, are the same codes.
"May succeed later" shows whether you can retry the same request unchanged.
`;

function toRow([name, { status, retryable, meaning }]: [string, (typeof errorTable)[ErrorCode]]) {
  return [code(name), status, retryable ? 'yes' : 'no', meaning];
}

export function createErrorsPage(): Page {
  return createPage('docs/reference/errors.md', {
    title: 'Errors',
    source: 'packages/core/src/contracts/errors.ts',
    sections: [
      introduction,
      formatTable(['Code', 'Status', 'May succeed later', 'Meaning'], Object.entries(errorTable).map(toRow)),
    ],
  });
}
