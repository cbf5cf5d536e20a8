/** The expression language: the grammar is the parser's table, every example is one that the tests run. */
import type { Json } from '@capstan/core/contracts/primitives';
import type { ExpressionFilter } from '@capstan/core/expression/evaluation';
import {
  type FilterName,
  filterNames,
  filters,
  pipelineDialect,
  skillFilters,
} from '@capstan/core/expression/filters';
import { createGrammar } from '@capstan/core/expression/grammar';
import { expressionLimits, runFields, scheduledFields, stepFields } from '@capstan/core/expression/language';
import { charges, workLimits } from '@capstan/core/expression/meter';
import {
  type BrokenExample,
  brokenConditions,
  brokenExamples,
  conditionExamples,
  type Example,
  exampleScope,
  examples,
  filterExamples,
  itemExamples,
  itemScope,
  skillFilterExamples,
  skillScope,
} from '../../packages/core/test/expression/examples.ts';
import { code, createPage, formatTable, type Page } from './page.ts';

function showJson(value: Json): string {
  return code(JSON.stringify(value));
}

function show(template: Json): string {
  return typeof template === 'string' ? code(template) : showJson(template);
}

function showExamples(header: string, shown: readonly Example[]): string {
  return formatTable(
    [header, 'Value'],
    shown.map(({ template, value }) => [show(template), showJson(value)]),
  );
}

const foundAt = { submission: 'at submission', run: 'in the run' };

function showBroken(header: string, shown: readonly BrokenExample[]): string {
  return formatTable(
    [header, 'Error', 'Found'],
    shown.map(({ template, error, found }) => [show(template), code(error), foundAt[found]]),
  );
}

const rules = createGrammar(pipelineDialect);
const longestName = Math.max(...rules.map(({ name }) => name.length));

const grammar = `
\`\`\`text
${rules
  .map(({ name, kind, text }) => {
    const shown = { phrase: text, pattern: `/${text}/`, words: text }[kind];
    return `${name.padEnd(longestName)} = ${shown}`;
  })
  .join('\n')}
\`\`\`

\`{ }\` means any number of times, \`/ /\` is a regular expression. White space is allowed between the parts of an expression, not inside a part between \`/ /\`. \`template\` is a string in an input or output, \`when\` the condition of a step.
`;

const roots = formatTable(
  ['Path', 'Value'],
  [
    ['`job.…`', 'the submitted job'],
    ...stepFields.map((field) => [
      code(`steps.<id>.${field}${field === 'output' ? '.…' : ''}`),
      {
        output: 'the output of the step, in the form of its output schema',
        status: 'how the step ended: `succeeded`, `reused`, `failed`, `unknown`, `skipped` or `cancelled`',
        error: 'its error, `{code, message, details?}`; missing if it has none',
        cost_usd: 'the cost of its attempts so far',
      }[field],
    ]),
    [
      runFields
        .filter((field) => !scheduledFields.has(field))
        .map((field) => code(`run.${field}`))
        .join(', '),
      'facts of the run',
    ],
    [
      code('run.scheduled_at'),
      'the moment for which a schedule planned the run, also in its reruns; missing in others',
    ],
    [
      code('run.scheduled_date'),
      'the date of that moment in the time zone of the schedule, such as `2026-01-31`; missing where that is',
    ],
    [
      [code('run.period_start'), code('run.period_end')].join(', '),
      'the period that it stands for: from the start before to `run.scheduled_at`; missing where that is',
    ],
    ['`item`, `item.…`', 'inside `for_each`: the item'],
    ['`index`', 'inside `for_each`: the index of the item, from 0'],
    ['`round.index`', 'inside `repeat`: the index of the round, from 0'],
    ['`round.previous`', 'inside `repeat`: the output of the round before; missing in the first round'],
    ['`round.output`', 'in `repeat.until`: the output of the round'],
    [
      '`secrets.<name>`',
      'in the input of a step with `capability`, alone in its `{{ }}`: a [secret](../operate/secrets.md) of the project',
    ],
  ],
);

const ruleList = `
### Types and text

- A string that is exactly one \`{{ }}\` keeps the type of its value.
- Inside a longer text, strings are inserted unchanged, numbers and booleans as JSON text. Any other value is an error: use \`| json\`, or \`?? ""\` for null.
- Nothing is converted: \`"42"\` is never \`42\`.
- Object keys are never templates, and results are never evaluated again. \`{"$literal": value}\` gives the value unchanged.

### Missing values

- A missing value is the error \`expression_unresolved\`. The step fails before an instance is chosen, at no cost, and is not retried.
- \`??\` gives a default for a missing value and for null. It covers no other error.

### Operators

- \`==\` and \`!=\` are strict, and compare lists and objects by content.
- \`<\`, \`<=\`, \`>\` and \`>=\` order two numbers or two strings, strings by UTF-16 unit.
- Comparisons associate to the left.
- \`&&\`, \`||\` and \`!\` accept booleans only. \`&&\` and \`||\` evaluate their right side only if it decides the result.
- \`+\`, \`-\`, \`*\` and \`/\` calculate with numbers. \`*\` and \`/\` bind more tightly than \`+\` and \`-\`, filters more tightly than all four, and \`??\` less tightly. Equal ones associate to the left.
- Names may hold \`-\`, so the operator has white space on both sides. \`-2\` is a number.
- A calculation with a missing value is missing, so \`??\` covers it. A division by 0, and a result too large for a number, are errors.
- A number of an answer with more digits than a double keeps, such as a 64-bit id, stays exact: as a value, in a text, by \`string\`, \`json\` and \`==\`. To calculate with it, or to order it, is an error. \`| number\` makes such a number of its text.
- \`in\` looks for a value in a list, for a string in a string, or for a string among the keys of an object.
- Comparisons and conditions need parentheses: \`{{ ( a == b ) }}\`. Only an operator or a filter may follow the closing one.

### Lists, objects and paths

- \`[a, b]\` makes a list, and \`{"key": a}\` an object. Keys are in quotes. A list or object with a missing value in it is missing, so \`??\` covers it.
- \`[*]\` means every item. An item that is null stays null. A second \`[*]\` does not flatten the list.
- A bracket may hold an expression: \`steps.plan.output[index]\` takes the item at a place, and \`job.prices[item]\` the member of a key. A place without a value is missing, so \`??\` covers it. \`[*]\` cannot follow such a bracket.
- There is no negative index: \`| last\` gives the last item.
- \`[0]\` on an object, and \`["x"]\` or \`.x\` on a list, are errors that \`??\` does not cover.
- A step depends on every step that its expressions mention, without \`depends_on\`.

### What expressions cannot read

- Expressions have no clock, no random values and no environment variables.
- A secret has no value in an expression. \`secrets.<name>\` is alone in its \`{{ }}\`, and only the request to the instance holds the value.
- \`__proto__\`, \`prototype\` and \`constructor\` are refused as names.
`;

const whenRules = `
A \`when\` value is a condition without \`{{ }}\`. One \`{{ }}\` around the whole condition is accepted too. Comparisons need no parentheses there. The value must be a boolean.
`;

const limits = formatTable(
  ['Limit', 'Value'],
  [
    ['bytes of one string that holds an expression', expressionLimits.stringBytes],
    ['segments of a path', expressionLimits.pathSegments],
    ['nested parentheses, lists and objects', expressionLimits.nesting],
    ['nested lists and objects in a value', expressionLimits.valueNesting],
    ['expressions in one definition', expressionLimits.expressionsPerDefinition],
  ],
);

const workRules = `
Expressions also have a limit of work, in units. A unit stands for about ten nanoseconds, so the limits are some milliseconds. Units are counted and time is not: an expression ends the same way on every machine.

${formatTable(
  ['Work', 'Units'],
  [
    ['a part of an expression, such as a path or a sign', charges.part],
    ['a filter', charges.filter],
    [`${charges.charactersRead} characters that are read or passed on`, 1],
    [`${charges.charactersBuilt} characters that are built`, 1],
    [`${charges.charactersEscaped} characters that become JSON text`, 1],
    ['an item or a member that is looked at or compared', charges.value],
    ['a value that is read from JSON text, or written as such', charges.textValue],
    ['two items that `sort` compares', charges.comparison],
  ],
)}

${formatTable(
  ['Limit of', 'Units'],
  [
    ['an input, a condition, the items or the output of a run', workLimits.run],
    ['one of them in a plan', workLimits.planned],
    ['all of them in a plan', workLimits.plan],
    ['the key of the concurrency of one run', workLimits.key],
    ['all keys of one request, or all templates of skills that are tried for one job', workLimits.request],
    ['a price by the input', workLimits.price],
    ['all prices for one choice of an instance', workLimits.choice],
  ],
)}

- More is the error \`expression_limit\` (422). It names the limit, the place and the step.
- An input that passes on a text of 16 MiB takes about two million units. So does one that copies a hundred thousand objects with one key.
- All evaluations of a request share its limit. Between two steps of a plan, the server answers others.
- If a plan has used half of its units, it no longer looks at each item of a \`for_each\`. The note \`items_not_looked_at\` reports that.
- A price that takes more does not count: the router reserves the [price by the rate](../write-a-capability.md#a-price-by-the-input).
`;

const writtenArguments: Readonly<Record<ExpressionFilter['argument'], string>> = {
  none: '',
  string: '("…")',
  field: '("field")',
  value: '(expr)',
  values: '(expr, expr)',
  optional: '(expr)',
  condition: '("field" operator expr)',
};

function showCall(name: FilterName): string {
  return `${name}${writtenArguments[filters[name].argument]}`;
}

const filterTable = formatTable(
  ['Filter', 'Gives', 'Example', 'Result'],
  filterNames.map((name: FilterName) => {
    const { template, value } = filterExamples[name];
    return [code(showCall(name)), filters[name].summary, show(template), showJson(value)];
  }),
);

const filterRules = `
- A filter passes a missing value on to the next \`??\`, or to \`default\`, which means the same. It refuses a value of another type.
- An argument \`expr\` is any expression, such as a path. A field is a name in quotes.
- \`sort\`, \`min\` and \`max\` take numbers only, or strings only. Equal items keep their order.
- \`round\` rounds halves away from zero. Its argument may be absent.
- Moments are RFC 3339 texts, dates, or milliseconds since 1970. Results are in UTC. There is no time zone and no clock. \`run.scheduled_date\` is the date of a run of a schedule, [in its zone](../operate/schedules.md#the-period-of-a-run).
`;

const skillFilterTable = formatTable(
  ['Filter', 'Gives', 'Example', 'Result'],
  Object.entries(skillFilters).map(([name, { argument, summary }]) => {
    const { template, value } = skillFilterExamples[name as keyof typeof skillFilters];
    return [code(argument === 'none' ? name : `${name}(value)`), summary, show(template), showJson(value)];
  }),
);

export function createExpressionsPage(): Page {
  return createPage('docs/reference/expressions.md', {
    title: 'Expressions',
    source: 'packages/core/src/expression/',
    sections: [
      "Strings in a step's `input` and in the pipeline's `output` may hold `{{ expressions }}`.",
      '## Grammar',
      grammar,
      '## Paths',
      roots,
      '## Rules',
      ruleList,
      '## Filters',
      filterTable,
      filterRules,
      '## Examples',
      `The examples here and above use this job:\n\n\`\`\`json\n${JSON.stringify(exampleScope.job, null, 2)}\n\`\`\``,
      showExamples('Template', examples),
      `Inside \`for_each\`, where \`item\` is ${showJson(itemScope.item ?? null)} and \`index\` is ${itemScope.index}:`,
      showExamples('Template', itemExamples),
      'Some errors are found when the definition is submitted, others only in a run:',
      showBroken('Template', brokenExamples),
      '## Conditions',
      whenRules,
      showExamples('`when`', conditionExamples),
      showBroken('`when`', brokenConditions),
      '## In the template of a skill',
      "The strings of a skill's template take the same expressions, with other roots and two more filters. `input.…` is the input that failed, `match.…` the named groups of the error pattern. Pipeline definitions accept neither.",
      skillFilterTable,
      `In these examples the input is \`${JSON.stringify(skillScope.input)}\`, and the groups are \`${JSON.stringify(skillScope.match)}\`.`,
      '## Limits',
      limits,
      workRules,
    ],
  });
}
