/** The expression language; every example is evaluated while the page is made. */
import type { Json } from '../../src/contracts/primitives.ts';
import { comparisonOperators } from '../../src/core/expression/ast.ts';
import { skillDialect } from '../../src/core/expression/dialect.ts';
import { evaluateTemplate } from '../../src/core/expression/evaluate.ts';
import type { ExpressionScope, SkillScope } from '../../src/core/expression/evaluation.ts';
import { type FilterName, filterNames, filters } from '../../src/core/expression/filters.ts';
import { expressionLimits } from '../../src/core/expression/limits.ts';
import { runFields, stepFields } from '../../src/core/expression/roots.ts';
import { type SkillFilterName, skillFilters } from '../../src/core/expression/skill-filters.ts';
import { compileTemplate } from '../../src/core/expression/template.ts';
import { code, createPage, formatTable, type Page } from './page.ts';

const scope: ExpressionScope = {
  job: {
    title: 'Day one',
    take: 3,
    draft: false,
    rate: '1.5',
    public: 'true',
    note: null,
    tags: ['sea', 'sun'],
    clips: [
      { path: 'media://job_1/in/a.mp4', ms: 2000 },
      { path: 'media://job_1/in/b.mp4', ms: 3000 },
    ],
  },
  steps: {
    join: { output: { output_path: 'media://job_1/all.mp4' }, status: 'succeeded', cost_usd: 0.25 },
  },
  run: { id: 'run_1', job_id: 'job_1', attempt: 1, pipeline: 'reel', version: '1.0' },
};

const filterExamples: Record<FilterName, string> = {
  json: 'tags: {{ job.tags | json }}',
  string: '{{ job.take | string }}',
  number: '{{ job.rate | number }}',
  bool: '{{ job.public | bool }}',
  length: '{{ job.clips | length }}',
  first: '{{ job.tags | first }}',
  last: '{{ job.tags | last }}',
  join: '{{ job.tags | join(", ") }}',
  basename: '{{ job.clips[0].path | basename }}',
};

const skillScope: SkillScope = {
  input: { width: '1919.5', codec: 'H264', note: null },
  match: { g1: '4096' },
};

const skillFilterExamples: Record<SkillFilterName, string> = {
  int: '{{ match.g1 | int }}',
  even: '{{ input.width | even }}',
  lower: '{{ input.codec | lower }}',
  default: '{{ input.note | default(30) }}',
};

const examples: readonly Json[] = [
  '{{ job.take }}',
  'take {{ job.take }} of {{ job.title }}',
  '{{ job.clips[*].path }}',
  '{{ job["title"] }}',
  '{{ job.subtitle ?? job.title }}',
  '{{ job.note ?? "none" }}',
  '{{ ( job.take > 2 && !job.draft ) }}',
  '{{ ( "sea" in job.tags ) }}',
  '{{ ( steps.join.status == "succeeded" ) }}',
  'media://{{ run.job_id }}/cover.jpg',
  "{{ '{{' }} as it is }}",
  { $literal: '{{ not an expression }}' },
];

const evaluate = (template: Json): string =>
  JSON.stringify(evaluateTemplate(compileTemplate(template), scope));

const evaluateInSkill = (template: Json): string =>
  JSON.stringify(evaluateTemplate(compileTemplate(template, '', skillDialect), skillScope));

const show = (template: Json): string =>
  code(typeof template === 'string' ? template : JSON.stringify(template));

const grammar = `
\`\`\`text
template   = { text | "{{" expr "}}" }
expr       = alt { "??" alt }                  alt     = primary { "|" filter }
primary    = path | number | string | true | false | null | "(" cond ")"
path       = root { "." name | "[" int "]" | "[" string "]" | "[*]" }
cond       = and { "||" and }                  and     = compared { "&&" compared }
compared   = operand { operator operand }      operand = "!" operand | expr
operator   = ${comparisonOperators.map((operator) => `"${operator}"`).join(' | ')}
string     = "…" with JSON's escapes | '…' as it is
filter     = ${filterNames.map((name) => (filters[name].argument === 'none' ? name : `${name}(string)`)).join(' | ')}
\`\`\`
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
  ],
);

const rules = `
- A string that is exactly one \`{{ }}\` keeps the type of its value. Inside text, strings stand as they are, numbers and booleans as JSON text, anything else is an error (use \`| json\`, or \`?? ""\`).
- A missing value is the error \`expression_unresolved\`: the step fails before any instance is chosen, at no cost, and is not retried. \`??\` covers missing and null, nothing else.
- Nothing is converted: \`"42"\` is never \`42\`. \`==\` and \`!=\` are strict and deep. \`<\`, \`<=\`, \`>\`, \`>=\` order two numbers or two strings. \`&&\`, \`||\` and \`!\` take booleans only.
- \`in\` looks for a value in a list, or for a string in a string or among the keys of an object.
- Comparisons and conditions stand in parentheses: \`{{ ( a == b ) }}\`.
- \`[0]\` on an object and \`.x\` on a list are errors that \`??\` does not cover. There is no negative index; the last item is \`| last\`. \`[*]\` is every item; a second one does not flatten.
- Object keys are never templates, and results are never read again as templates.
- A step waits for every step that its expressions mention, without \`depends_on\`.
- There is no clock, no random value, no environment and no secret. \`__proto__\`, \`prototype\` and \`constructor\` are refused as names. The roots \`item\` and \`index\` are reserved and have no value yet.
`;

const limits = formatTable(
  ['Limit', 'Value'],
  [
    ['bytes of one string that holds an expression', expressionLimits.stringBytes],
    ['segments of a path', expressionLimits.pathSegments],
    ['parentheses, lists and objects inside one another', expressionLimits.nesting],
    ['expressions in one definition', expressionLimits.expressionsPerDefinition],
    ['characters and items that one template may build', expressionLimits.built],
  ],
);

export const createExpressionsPage = (): Page =>
  createPage('docs/reference/expressions.md', {
    title: 'Expressions',
    source: 'src/core/expression/',
    sections: [
      "Strings in a step's `input` and in the pipeline's `output` may hold `{{ expressions }}`.",
      '## Grammar',
      grammar,
      '## Paths',
      roots,
      '## Rules',
      rules,
      '## Filters',
      formatTable(
        ['Filter', 'Gives', 'Example', 'Result'],
        filterNames.map((name) => {
          const example = filterExamples[name];
          return [code(name), filters[name].summary, code(example), code(evaluate(example))];
        }),
      ),
      'A filter passes a missing value on, up to the next `??`, and refuses a value of another type.',
      '## Examples',
      `Here and above, the job is\n\n\`\`\`json\n${JSON.stringify(scope.job, null, 2)}\n\`\`\``,
      formatTable(
        ['Template', 'Value'],
        examples.map((template) => [show(template), code(evaluate(template))]),
      ),
      '## In the template of a skill',
      "The strings of a skill's template take the same expressions, with other roots and four more filters. `input.…` is the input that failed, `match.…` the named groups of the error pattern. Pipeline definitions take neither.",
      formatTable(
        ['Filter', 'Gives', 'Example', 'Result'],
        Object.entries(skillFilterExamples).map(([name, example]) => {
          const { argument, summary } = skillFilters[name as SkillFilterName];
          return [
            code(argument === 'none' ? name : `${name}(value)`),
            summary,
            code(example),
            code(evaluateInSkill(example)),
          ];
        }),
      ),
      `There, the input is \`${JSON.stringify(skillScope.input)}\`, and the groups are \`${JSON.stringify(skillScope.match)}\`.`,
      '## Limits',
      limits,
    ],
  });
