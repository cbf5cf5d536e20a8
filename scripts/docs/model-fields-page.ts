import {
  chatFields,
  type FieldFate,
  type FieldRule,
  type FieldTable,
  messagesFields,
  responsesFields,
} from '@capstan/core/model-protocols/fields';
import { code, createPage, formatTable, type Page } from './page.ts';

const introduction = `
An instance that speaks [the protocol of the client](../write-a-capability.md#the-clients-own-protocol) gets every field
as it came. For any other instance, the router translates the request. These tables show the result for each field.
\`null\`, an empty list and an empty object count as absent.

| result | meaning |
|---|---|
| translated | the field has a place in [the input of a model](../models.md#input) |
| offered | an instance gets the field if its schema declares the named one; otherwise it is dropped |
| ignored | the field does not change the answer |
| dropped | the answer comes without it. The header \`X-Capstan-Dropped\` names it |
| refused | the request is refused with 422, and the error names the field |

Fields that no table names are dropped. With \`X-Capstan-Strict: true\`, a request with a dropped field is refused.
`;

const order: readonly FieldFate[] = ['translated', 'offered', 'ignored', 'dropped', 'refused'];

function describe({ note = '', defaults = [] }: FieldRule): string {
  const usual = defaults.map((value) => code(JSON.stringify(value))).join(', ');
  return [note, usual === '' ? '' : `absent: ${usual}`].filter((text) => text !== '').join('; ');
}

function toTable(fields: FieldTable): string {
  const rows = order.flatMap((fate) =>
    Object.entries(fields)
      .filter(([, rule]) => rule.fate === fate)
      .map(([path, rule]) => [code(path), fate, describe(rule)]),
  );
  return formatTable(['Field', 'Result', 'Note'], rows);
}

export function createModelFieldsPage(): Page {
  return createPage('docs/reference/model-fields.md', {
    title: 'Fields of model requests',
    source: 'packages/core/src/model-protocols/fields.ts',
    sections: [
      introduction,
      '## OpenAI chat completions',
      toTable(chatFields),
      '## OpenAI responses',
      toTable(responsesFields),
      '## Anthropic messages',
      toTable(messagesFields),
    ],
  });
}
