import { describe, expect, test } from 'vitest';
import { countWords, splitSentences } from '../../scripts/prose/blocks.ts';
import { lintCode, listComments, listTexts, listTitles } from '../../scripts/prose/code.ts';
import { lintPage } from '../../scripts/prose/lint.ts';
import { compareWithTotals, lowerTotals } from '../../scripts/prose/totals.ts';
import { parseSource } from '../../scripts/structure/source.ts';

async function findIn(text: string): Promise<string[]> {
  const { findings } = await lintPage('docs/page.md', text);
  return findings.map(({ rule, subject }) => `${rule}: ${subject.replace('docs/page.md ', '')}`);
}

async function rulesOf(text: string): Promise<string[]> {
  return [...new Set((await findIn(text)).map((finding) => finding.replace(/:.*/, '')))];
}

function repeatWord(count: number): string {
  return `Steps${' run'.repeat(count - 1)}.`;
}

/** Sentences that a reader stopped at, and what he wrote instead. */
const rewritten: readonly (readonly [id: string, now: string, better: string])[] = [
  [
    'E1',
    'A pause or a cancel is heard when that is told: after a quarter of a second, or where batches follow one another without a step from the queue, after three quarters; on a machine that is busy with other work, later. What is under way then ends after a pause, items that were asked for already (`max_parallel`, at most 200) among it; after a cancel it is cut.',
    'A running batch notices a pause or cancel only when it reports back: usually within 250 ms, within 750 ms if batches run back to back, later on a busy machine. After a pause, work already started (including up to `max_parallel` items) finishes; after a cancel it is aborted.',
  ],
  [
    'E2',
    'With `dispatch: auto`, which is the default, a run decides when it is taken, once for all steps that ask for the same instances: inline if nine of ten calls take at most 100 ms on every instance that they may lead to (…), as far as at least five calls show; queued else.',
    // The reader's own second sentence has 32 words: it is cut in two here.
    'With `dispatch: auto` (the default), Capstan decides when it accepts the run. Steps that can be routed to the same instances share one decision. It is inline if, over at least five known calls, 90 % take 100 ms or less on each of those instances; otherwise queued.',
  ],
  [
    'E3',
    'Never inline are steps with `retry.max: 0`, and what calls nobody.',
    'Steps with `retry.max: 0`, and steps that call no capability, are never inline.',
  ],
  [
    'E4',
    'When it fails, the next one makes it; who has waited twice in vain makes it alone.',
    'If that call fails, the next waiter makes it; a caller that has waited twice without a result stops waiting and makes its own call.',
  ],
  [
    'E5',
    'a clip that is uploaded again under another name hits, one whose bytes differ misses',
    're-uploading the same clip under another name is a hit; a clip with different bytes is a miss',
  ],
  [
    'E6',
    'A **warning** may fail or cannot have been meant. A **note** says what nobody can tell.',
    'A **warning** marks something that may fail or is probably a mistake. A **note** marks something that cannot be determined.',
  ],
  [
    'E7',
    'Steps without mutual need run at the same time, at most 200 of a run.',
    'Steps that do not depend on each other run in parallel, up to 200 per run.',
  ],
  [
    'E8',
    'Whoever is asked with `application/x-ndjson` in `Accept` may answer `POST /exec` by that type',
    "If the request's `Accept` header lists `application/x-ndjson`, the instance may stream its answer in that format",
  ],
  [
    'E9',
    'As the head says 200 by then, a failure says its status there',
    'The 200 status has already been sent by then, so a failure carries its status in the last line',
  ],
  [
    'E10',
    'nobody is thought dead for being silent, but a silence three times as long as any before it in the call, and longer than 5 s, is shown',
    'An instance is never considered dead for being silent, but a gap of more than 5 s that is three times the longest earlier gap in the call is reported',
  ],
  [
    'E11',
    '`new CallFailure(503, message, {retryAfterS})` says another status, one of 429, 502, 503, 504',
    'throw `new CallFailure(503, …)` to answer with 429, 502, 503 or 504 instead',
  ],
  [
    'E12',
    'Without it, the life of an instance is this',
    'If you do not use `capability start`, the instance has to do the following itself',
  ],
  [
    'E13',
    '422 ends the step, another 5xx is tried on another instance',
    'A 422 means the input is refused: the step escalates. Any 5xx other than 503 is retried on another instance.',
  ],
  [
    'E14',
    '`MEDIA_REDIRECT=true` lets bytes pass the API by',
    'With `MEDIA_REDIRECT=true` clients transfer files directly to and from the bucket instead of through the API',
  ],
  ['E15', 'Signs of life of long steps are billed', 'Temporal Cloud bills heartbeats'],
  [
    'E16',
    'A request that met a dying server is sent to the other one where that cannot happen twice',
    'If a server dies mid-request, HAProxy retries it on the other server when a retry is safe',
  ],
  [
    'E17',
    'leaves an admin key there (mode 0600), and leaves a key that still works alone',
    'writes an admin key there (mode 0600), unless the file already holds one that works',
  ],
  [
    'E18',
    'A wrong setting ends the start with exit code 1 and all that is wrong, a Postgres or Temporal that does not answer with 2.',
    'If a setting is invalid the process lists every problem and exits with 1; if Postgres or Temporal is unreachable it exits with 2.',
  ],
  [
    'E19',
    'is what `capstan dev` starts its own with: calls leave much that lives for a millisecond',
    '`capstan dev` sets this for its own processes; it reduces GC cost because calls create many short-lived objects',
  ],
  ['E20', 'a name in it that is almost a setting is refused', 'a misspelt setting name is an error'],
  [
    'E21',
    'A key holds no project and no scope that the key which made it lacks, ends no later, and is revoked with it.',
    'A key cannot have projects, scopes or an expiry beyond those of the key that created it, and is revoked together with it.',
  ],
  [
    'E22',
    'a run that no step started has ended, a person is asked',
    'a top-level run ended, a review was opened',
  ],
  [
    'E23',
    'A `url` without a host is one of the API: without `MEDIA_REDIRECT`, and over a folder, the same request is answered so, and a client needs one way only.',
    'A relative `url` points at the API (this is the answer without `MEDIA_REDIRECT` and for folder stores), so clients need only one upload path.',
  ],
  [
    'E24',
    'Temporal, which takes a minute or two to delete what has ended just now, an upload in one piece straight to a bucket (65 minutes after it was allowed, so that it does not come when nobody looks any more)',
    'Temporal (recently closed workflows take a minute or two to delete) and single-part direct uploads (up to 65 minutes, until their signed URL can no longer be used)',
  ],
  [
    'E25',
    'loses nothing: the workflow waits, its task fails with …, and goes on when the key is there',
    'No data is lost: the workflow task fails with … and is retried until the key is available.',
  ],
  [
    'E26',
    "every step takes a few milliseconds, where one of Capstan's that is not short takes tens",
    'a step takes a few milliseconds; a queued Capstan step takes tens',
  ],
  [
    'E27',
    'Needed: Node 20.19 or newer, on Linux; macOS is not tried.',
    'Requires Node 20.19+ on Linux; macOS is untested.',
  ],
  [
    'E28',
    '`capstan completion bash` (or zsh, fish) prints what makes a shell complete commands, options and their values',
    'prints a shell completion script',
  ],
  [
    'E29',
    '`--watch` exits … 2 when that is not known',
    '`--watch` exits … 2 when the outcome is unknown (connection lost)',
  ],
  [
    'E30',
    'The same under fire. Its package is installed out of the package of the checkout.',
    "The same with faults injected. It is installed from the checkout's npm package.",
  ],
];

describe('the sentences that a reader stopped at', () => {
  test.each(rewritten)('%s is found as it was', async (_, now) => {
    expect(await findIn(now)).not.toEqual([]);
  });

  test.each(rewritten)('%s is not found as it was rewritten', async (_, _now, better) => {
    expect(await findIn(better)).toEqual([]);
  });
});

describe('the rules', () => {
  test('refuse a sentence of 31 words, in a paragraph, a list and a table', async () => {
    const text = repeatWord(31);
    for (const page of [text, `- ${text}`, `> ${text}`, `| a |\n| --- |\n| ${text} |`])
      expect(await rulesOf(page)).toEqual(['long-sentence']);
    expect(await rulesOf(repeatWord(30))).toEqual([]);
  });

  test('take a cell without a full stop for a list', async () => {
    const items = Array.from({ length: 20 }, (_, index) => `runs of row ${index}: 3`).join('; ');
    expect(await rulesOf(`| a |\n| --- |\n| ${items} |`)).toEqual([]);
    expect(await rulesOf(`| a |\n| --- |\n| ${items}. |`)).toEqual(['long-sentence']);
  });

  test('refuse a paragraph of more than 100 words', async () => {
    expect(await rulesOf(`${repeatWord(25)} `.repeat(4))).toEqual([]);
    expect(await rulesOf(`${`${repeatWord(25)} `.repeat(4)}Run.`)).toEqual(['long-paragraph']);
  });

  test.each([
    ['What it did is kept.', ['subject: What it did is kept.']],
    ['Of its three keys one is new.', ['subject: Of its three keys one is']],
    ['The step waits; who asked may cancel it.', ['subject: who asked may cancel it.']],
    ['What does a step cost?', []],
    ['## What a step costs', []],
    ['**What a hit does.** It costs nothing.', []],
    ['Two ways. **What a hit does.** It costs nothing.', []],
    ['Two ways. [What a step costs](page.md) compares both.', []],
    ['- what it waits for', []],
    ['Ask what to do.', []],
  ])('look for an anonymous subject: %s', async (text, findings) => {
    expect(await findIn(text)).toEqual(findings);
  });

  test('read neither code nor addresses, and a link by its text', async () => {
    expect(await findIn('Set `told` in [the file](told.md) <!-- told -->.\n\n```text\ntold\n```')).toEqual(
      [],
    );
    expect(await findIn('Read [as it was told](page.md).')).toEqual(['term: told']);
  });

  test('allow in a heading what its text may not have', async () => {
    expect(await findIn('## What stays\n\n| What stays |\n| --- |\n| It keeps what stays. |')).toEqual([
      'term: what stays',
    ]);
    expect(await findIn('## Ask whoever comes')).toEqual(['term: whoever']);
  });

  test('ask for one spelling', async () => {
    expect(await findIn('The color of a canceled run is grey.')).toEqual([
      'spelling: color',
      'spelling: canceled',
    ]);
  });

  test('read the help of commands: descriptions, arguments and options', async () => {
    const help = [
      '```text',
      'Usage: capstan demo [options] [told]',
      '',
      'start what is',
      'told here',
      '',
      'Options:',
      '  --told <dir>  keeps all data, and goes',
      '                on (default: told)',
      '  -h, --help    display help for command',
      '```',
    ].join('\n');
    expect(await findIn(help)).toEqual(['term: told', 'term: goes on']);
    const { findings } = await lintPage('docs/page.md', help);
    expect(findings.map(({ message }) => message.split(' ')[0])).toEqual([
      'docs/page.md:4',
      'docs/page.md:8',
    ]);
  });
});

describe('words and sentences', () => {
  test('a number and its unit are one word, a sign alone is none', () => {
    expect(countWords('90 % take 100 ms or less – mostly')).toBe(6);
  });

  test('an abbreviation and a decimal point end no sentence', () => {
    expect(splitSentences('Use a store, e.g. Postgres 18.4, for it. Then start.')).toEqual([
      'Use a store, e.g. Postgres 18.4, for it.',
      'Then start.',
    ]);
  });

  test('a page has its words, its longest sentence and paragraph, and its reading ease', async () => {
    const page = await lintPage('docs/page.md', '# Title\n\nThe cat sat. The dog ran to `x`.\n\n- One.');
    expect(page).toMatchObject({ words: 9, sentence: 5, paragraph: 8, ease: 119 });
  });
});

describe('the totals', () => {
  const page = async () => lintPage('docs/page.md', 'It is told. They are told.');

  test('allow the present findings, and no more', async () => {
    expect(compareWithTotals([await page()], { 'docs/page.md': { term: 2 } })).toEqual([]);
    expect(compareWithTotals([await page()], { 'docs/page.md': { term: 1 } }).at(-1)).toBe(
      'docs/page.md: 2 findings of term, at most 1',
    );
    expect(compareWithTotals([await page()], {})).toHaveLength(3);
  });

  test('are lowered, never raised', async () => {
    const totals = { 'docs/page.md': { term: 5, subject: 1 }, 'docs/gone.md': { term: 1 } };
    expect(lowerTotals([await page()], totals)).toEqual({ 'docs/page.md': { term: 2 } });
    expect(lowerTotals([await page()], {})).toEqual({});
  });
});

/** What is found in a file of TypeScript by one way to read it. */
function findingsIn(read: typeof listTexts, text: string): string[] {
  const { findings } = lintCode(parseSource('src/cli/a.ts', text), [read]);
  return findings.map(({ rule, subject }) => `${rule}: ${subject.replace('src/cli/a.ts ', '')}`);
}

describe('texts that code shows', () => {
  test.each([
    ["command({ about: 'the run goes on without it' })", ['term: goes on']],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the code of a template
    ['print(`${count} calls were under way`)', ['term: under way']],
    ["throw new Error('the behavior of an instance')", ['spelling: behavior']],
    ["describe(z.string(), 'a key that nobody ' + 'has')", ['term: nobody']],
  ])('are linted for their words: %s', (code, findings) => {
    expect(findingsIn(listTexts, `x({ y: [1] });\nz(() => { ${code}; });`)).toEqual(findings);
  });

  test.each([
    ['a name', "run('told-lines')"],
    ['a path', "import '../nobody/says.ts';"],
    ['two words', "print('nobody says')"],
    ['a comment', '// nobody says what is told here\n'],
    ['a long sentence', `print('${repeatWord(40)}')`],
    ['the beginning of a sentence', "print('What a run costs is shown here')"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the code of a template
    ['a value', 'print(`runs wait for ${nobody} of them`)'],
  ])('lints no words in %s', (_, code) => {
    expect(findingsIn(listTexts, code)).toEqual([]);
  });
});

describe('titles of tests', () => {
  test.each([
    ['of a test', "test('nobody signs in', () => {});", ['subject: Nobody signs in', 'term: nobody']],
    ['of it', "  it('is told at once', () => {});", ['term: told']],
    ['of a group', "describe('whoever comes', () => {});", ['term: whoever']],
    ['of a table', "it.each([['a', 1]])('says %s', () => {});", ['term: says']],
    [
      'of a table over lines',
      "it.each<[string]>([\n  ['a'],\n])(\n  'says %s',\n  () => {},\n);",
      ['term: says'],
    ],
    ['of a condition', "test.runIf(isLong)('goes on', () => {});", ['term: goes on']],
    ['of a condition and a table', "test.runIf(isLong).each(['a'])('goes on', () => {});", ['term: goes on']],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the code of a template
    ['of a template', 'test.each`a\n${1}`(`it stands`, () => {});', ['term: stands']],
    ['in other quotes', 'it.concurrent("the caller\'s key says it", () => {});', ['term: says']],
    ['with a quote in them', "it('the key\\'s page says it', () => {});", ['term: says']],
    ['of a row of cases', "it.each([\n  ['a call that is told', 1],\n])('%s', () => {});", ['term: told']],
    ['in British English', "it('has a behavior', () => {});", ['spelling: behavior']],
    ['that begin with what', "it('what is missing fails', () => {});", ['subject: What is missing fails']],
  ])('are linted: %s', (_, code, findings) => {
    expect(findingsIn(listTitles, `import { it } from 'vitest';\n${code}\n`)).toEqual(findings);
  });

  test.each([
    ['a group that begins with what', "describe('what a caller pays', () => {});"],
    ['the continuation of a group', "it('of another project is refused', () => {});"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the code of a template
    ['a value', 'it(`refuses ${nobody}`, () => {});'],
    ['a word of code', "it('reads `told` and $told', () => {});"],
    ['a regular expression that is tested', "expect(pattern.test('nobody')).toBe(true);"],
    ['a row of data', "expect([['nobody', 1]]).toEqual(['nobody']);"],
    ['another call', "create('nobody', () => {});"],
  ])('lints no words in %s', (_, code) => {
    expect(findingsIn(listTitles, code)).toEqual([]);
  });

  test('are found at their lines', () => {
    const text = "it('is fine', () => {});\n\nit.each([\n  1,\n])('is told', () => {});\n";
    const { findings } = lintCode(parseSource('test/a.test.ts', text), [listTitles]);
    expect(findings.map(({ message }) => message.replace(/: .*/, ''))).toEqual([
      'test/a.test.ts:5 term “told”',
    ]);
  });
});

describe('comments', () => {
  test.each([
    ['a docstring', '/** The run goes on. */\nconst a = 1;', ['term: goes on']],
    ['a docstring of several lines', '/**\n * The run is under\n * way.\n */', ['term: under way']],
    ['a line', 'const a = 1; // nobody knows it\n', ['term: nobody']],
    ['lines that follow one another', '  // The run is under\n  // way.\n', ['term: under way']],
    ['a comment of SQL', '-- The run is under\n-- way.\n', ['term: under way']],
    ['a comment of JSX', '<p>{/* nobody sees it */}</p>;', ['term: nobody']],
    ['a later sentence', '/** The cost. Whatever is lost counts. */', ['subject: Whatever is lost counts.']],
    ['a parameter', '/** @param key that nobody has */', ['term: nobody']],
  ])('are linted: %s', (_, code, findings) => {
    expect(findingsIn(listComments, code)).toEqual(findings);
  });

  test.each([
    ['what a docstring describes', '/** What a call costs. */'],
    ['code', '/** Returns `told`, as {@link nobody} does. */'],
    ['an address', "fetch('https://nobody.example');"],
    ['an option', "run('capstan --nobody told');"],
    ['a pattern of paths', "glob('src/**/nobody/*.ts');"],
    ['texts', "print('nobody says what is told');"],
  ])('lints no words in %s', (_, code) => {
    expect(findingsIn(listComments, code)).toEqual([]);
  });
});
