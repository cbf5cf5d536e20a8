/** The expression language: the grammar is the parser's table, every example is one that the tests run. */
import type { Json } from '../../src/contracts/primitives.ts';
import {
  type FilterName,
  filterNames,
  filters,
  pipelineDialect,
  skillFilters,
} from '../../src/core/expression/filters.ts';
import { createGrammar } from '../../src/core/expression/grammar.ts';
import { expressionLimits, runFields, stepFields } from '../../src/core/expression/language.ts';
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
} from '../../test/core/expression/examples.ts';
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

const foundAt = { submission: 'when it is submitted', run: 'in the run' };

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

\`{ }\` is any number of times, \`/ /\` a regular expression. White space may stand between the parts of an expression, not inside those between \`/ /\`. \`template\` is a string in an input or output, \`when\` the condition of a step.
`;

const roots = formatTable(
  ['Path', 'Value'],
  [
    ['`job.…`', 'the submitted job'],
    ...stepFields.map((field) => [
      code(`steps.<id>.${field}${field === 'output' ? '.…' : ''}`),
      {
        output: 'what the step answered, in the form of its output schema',
        status: 'how the step ended',
        error: 'its error, `{code, message}`; missing when it has none',
        cost_usd: 'what its attempts cost so far',
      }[field],
    ]),
    [runFields.map((field) => code(`run.${field}`)).join(', '), 'facts of the run'],
    ['`item`, `item.…`', 'inside `for_each`: the item'],
    ['`index`', 'inside `for_each`: its index, from 0'],
  ],
);

const ruleList = `
- A string that is exactly one \`{{ }}\` keeps the type of its value. Inside text, strings stand as they are, numbers and booleans as JSON text, anything else is an error (use \`| json\`, or \`?? ""\`).
- A missing value is the error \`expression_unresolved\`: the step fails before any instance is chosen, at no cost, and is not retried. \`??\` covers missing and null, nothing else.
- Nothing is converted: \`"42"\` is never \`42\`. \`==\` and \`!=\` are strict, and deep for lists and objects. \`<\`, \`<=\`, \`>\`, \`>=\` order two numbers or two strings, strings by UTF-16 unit. Comparisons associate to the left.
- \`&&\`, \`||\` and \`!\` take booleans only. What stands right of \`&&\` and \`||\` is evaluated only when it decides.
- \`in\` looks for a value in a list, or for a string in a string or among the keys of an object.
- Comparisons and conditions stand in parentheses: \`{{ ( a == b ) }}\`. Only an operator or a filter follows a closing one.
- \`[0]\` on an object, \`["x"]\` and \`.x\` on a list are errors that \`??\` does not cover. There is no negative index; the last item is \`| last\`. \`[*]\` is every item, and one that is null stays null; a second one does not flatten.
- Object keys are never templates, and results are never read again as templates. \`{"$literal": value}\` is the value as it is.
- A step waits for every step that its expressions mention, without \`depends_on\`.
- There is no clock, no random value, no environment and no secret. \`__proto__\`, \`prototype\` and \`constructor\` are refused as names.
`;

const whenRules = `
A \`when\` value is a condition without \`{{ }}\`; one \`{{ }}\` around all of it is accepted too. Comparisons need no parentheses there, and the value must be a boolean.
`;

const limits = formatTable(
  ['Limit', 'Value'],
  [
    ['bytes of one string that holds an expression', expressionLimits.stringBytes],
    ['segments of a path', expressionLimits.pathSegments],
    ['parentheses, lists and objects inside one another', expressionLimits.nesting],
    ['lists and objects inside one another in a value', expressionLimits.valueNesting],
    ['expressions in one definition', expressionLimits.expressionsPerDefinition],
    [
      `characters that one template may build or compare; an item of a list counts as ${expressionLimits.charactersPerItem}`,
      expressionLimits.built,
    ],
  ],
);

const filterTable = formatTable(
  ['Filter', 'Gives', 'Example', 'Result'],
  filterNames.map((name: FilterName) => {
    const { template, value } = filterExamples[name];
    return [code(name), filters[name].summary, show(template), showJson(value)];
  }),
);

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
    source: 'src/core/expression/',
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
      'A filter passes a missing value on, up to the next `??`, and refuses a value of another type.',
      '## Examples',
      `Here and above, the job is\n\n\`\`\`json\n${JSON.stringify(exampleScope.job, null, 2)}\n\`\`\``,
      showExamples('Template', examples),
      `Inside \`for_each\`, where \`item\` is ${showJson(itemScope.item ?? null)} and \`index\` is ${itemScope.index}:`,
      showExamples('Template', itemExamples),
      'What is refused when the definition is submitted, and what fails in a run:',
      showBroken('Template', brokenExamples),
      '## Conditions',
      whenRules,
      showExamples('`when`', conditionExamples),
      showBroken('`when`', brokenConditions),
      '## In the template of a skill',
      "The strings of a skill's template take the same expressions, with other roots and four more filters. `input.…` is the input that failed, `match.…` the named groups of the error pattern. Pipeline definitions take neither.",
      skillFilterTable,
      `There, the input is \`${JSON.stringify(skillScope.input)}\`, and the groups are \`${JSON.stringify(skillScope.match)}\`.`,
      '## Limits',
      limits,
    ],
  });
}
