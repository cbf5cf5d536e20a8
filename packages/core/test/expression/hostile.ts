/** Templates and scopes made to break an expression language, and prototypes that notice when they are read. */
import fc from 'fast-check';
import { anyText } from '../../../../test/support/any-text.ts';
import type { Json } from '../../src/contracts/primitives.ts';
import type { ExpressionScope } from '../../src/expression/evaluation.ts';
import { aJob } from './a-scope.ts';

/** Own keys of hostile scopes; also what hostile templates ask for. */
const reachingNames = ['__proto__', 'constructor', 'prototype', 'toString', 'valueOf', 'hasOwnProperty'];
const readNames = ['a', 'b', 'then', 'toJSON', 'secret', 'output', '__hit', 'callee', '4000000'];

/** Not watched: lists, strings and functions own them, and the language itself sets the indexes of lists. */
const ownNames = ['length', 'name', '0', '1'];

/** Becomes MARKER for a reader that evaluates it as a template. */
export const unread = "{{ 'MAR' }}KER";

const code = [
  'globalThis.__hit=1',
  'constructor.constructor("globalThis.__hit=1")()',
  '$' + '{globalThis.__hit=1}',
  '`x`',
  '(()=>{globalThis.__hit=1})()',
  'process.exit(1)',
];

const key = fc.oneof(fc.constantFrom(...readNames, ...reachingNames, ...ownNames), anyText());

export const hostileJson: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constantFrom<Json>(null, true, false, 0, 1.5, '', '1', 'true', unread, ...code),
    anyText(),
    fc.array(tie('value'), { maxLength: 4 }),
    // `Object.fromEntries` makes own keys, also of `__proto__`
    fc.array(fc.tuple(key, tie('value')), { maxLength: 5 }).map((entries) => Object.fromEntries(entries)),
  ),
})).value;

export const hostileScope: fc.Arbitrary<ExpressionScope> = fc
  .record({ a: hostileJson, b: hostileJson, l: fc.array(hostileJson, { maxLength: 4 }), item: hostileJson })
  .map(({ item, ...job }) => ({ ...aJob(job), steps: { a: { output: job.b } }, item, index: 0 }));

const operand = fc.oneof(
  fc
    .tuple(
      fc.constantFrom('job', 'job.a', 'job.b', 'job.l', 'item', 'index', 'steps.a.output', 'run', 'match'),
      fc.array(
        fc.oneof(
          fc.constantFrom(...readNames, ...reachingNames, ...ownNames).map((name) => `["${name}"]`),
          fc.constantFrom('.a', '.b', '.then', '.secret', '[0]', '[4000000]', '[*]'),
        ),
        { maxLength: 3 },
      ),
    )
    .map(([root, segments]) => root + segments.join('')),
  fc.constantFrom('[]', '{}', '[job.l, job.a]', '{"a": job.b, "then": [job]}', '{"__proto__": 1}'),
  fc.constantFrom('"a"', "'{{'", '1', '-1', 'true', 'null', ...code),
);

const filter = fc.constantFrom(
  ...[
    'json',
    'string',
    'number',
    'bool',
    'length',
    'first',
    'last',
    'join(",")',
    'basename',
    'tokens',
    'map("a")',
    'map("then")',
    'where("a" == job.b)',
    'where("toString" < 1)',
    'concat(job.l)',
    'slice(0, 2)',
    'unique',
    'flatten',
    'at(job.a)',
    'at("constructor")',
    'range(1)',
    'combinations',
    'sort',
    'sort_by("a")',
    'reverse',
    'sum',
    'min',
    'keys',
    'values',
    'upper',
    'split("a")',
    'replace("a", job.a)',
    'parse_json',
    'round(1)',
    'floor',
    'timestamp',
    'format_date("YYYY")',
    'add_duration("1d")',
    'default(1)',
    'default([job.a])',
    'constructor',
  ],
);

const sound = fc
  .array(
    fc.tuple(operand, fc.array(filter, { maxLength: 2 })).map((parts) => parts.flat().join(' | ')),
    { minLength: 1, maxLength: 4 },
  )
  .chain((operands) =>
    fc
      .array(fc.constantFrom('==', '!=', '<', 'in', '&&', '||', '??', '== !', '+', '-', '*', '/'), {
        minLength: operands.length,
        maxLength: operands.length,
      })
      .map(
        (all) => `(${operands.map((text, index) => (index > 0 ? `${all[index]} ${text}` : text)).join(' ')})`,
      ),
  );

const token = fc.oneof(
  fc.constantFrom('{{', '}}', '(', ')', '[', ']', '*', '.', '|', '||', '&&', '!', '??', '==', '<', 'in', '"'),
  fc.constantFrom(
    "'",
    '\\',
    '$',
    '`',
    '=>',
    ';',
    ' ',
    '\n',
    'job',
    'json',
    'null',
    '{',
    '}',
    '-1e9',
    '\u0000',
  ),
  fc.constantFrom(...code),
);

export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: sound.map((text) => `{{ ${text} }}`) },
  { weight: 1, arbitrary: operand.map((text) => `x {{ ${text} }} y`) },
  { weight: 1, arbitrary: fc.array(token, { maxLength: 30 }).map((all) => `{{ ${all.join('')} }}`) },
  { weight: 1, arbitrary: anyText().map((text) => `{{${text}}}`) },
);

const prototypes = [Object, Array, String, Number, Boolean, Function].map(
  ({ prototype }) => prototype as object,
);

/**
 * Runs something while every prototype notices reads of the names that hostile templates ask for; `constructor` stays,
 * which JavaScript itself reads when a list is mapped.
 * @returns the names that were read
 */
export function readsOfPrototypes(act: () => void): string[] {
  const reads: string[] = [];
  const names = [...readNames, 'toString', 'valueOf', 'hasOwnProperty'];
  const saved = prototypes.flatMap((prototype) =>
    names.map((name) => ({ prototype, name, before: Object.getOwnPropertyDescriptor(prototype, name) })),
  );
  for (const { prototype, name } of saved) {
    const get = () => {
      reads.push(name);
      return 'inherited';
    };
    Object.defineProperty(prototype, name, { configurable: true, get });
  }
  try {
    act();
  } finally {
    for (const { prototype, name, before } of saved) {
      if (before === undefined) Reflect.deleteProperty(prototype, name);
      else Object.defineProperty(prototype, name, before);
    }
  }
  return reads;
}
