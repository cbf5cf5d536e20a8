/**
 * Requests of one key that make a process work in one piece without an answer. `/livez` answers within 250 ms during
 * each of them. Every place where the size of the work is the caller's has its kind here.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answers, type Attack, count, list, send, type Target } from './attacks.ts';

/** Beside a freezing attack. */
export const freezingLivezMs = 250;

function post(target: Target, path: string, body: object): Promise<string> {
  return send(target, path, { method: 'POST', body: JSON.stringify(body) });
}

/** A text of ten million characters, from a few hundred. */
function grow(text: string): string {
  const [x, y] = ['x'.repeat(100), 'x'.repeat(1_000)];
  return `${text} | replace("x","${x}") | replace("x","${x}") | replace("${x}","${y}")`;
}

const bigText = grow(`"${'x'.repeat(100)}"`);

/** A list of forty thousand numbers. */
const bigList = `"[" | split("@") | concat(("${'x'.repeat(40)}" | replace("x","${'x'.repeat(100)}") | replace("x","9,3,7,1,8,2,6,4,5,0,")) | split("@")) | concat("0]" | split("@")) | join("") | parse_json`;

function planOf(steps: number, when: string, job: object = {}) {
  const definition = {
    pipeline: 'freezing',
    version: '1',
    steps: list(steps, (at) => ({ id: `s${at}`, set: { at }, when })),
  };
  return { definition, job };
}

function plans(name: string, steps: number, when: string, job?: object): Attack {
  const body = planOf(steps, when, job);
  return { name, play: (target) => count(list(20, () => post(target, '/v1/plan', body))) };
}

const numbers = list(2_000, (at) => (at * 7_919) % 2_003);

const expressions: readonly Attack[] = [
  plans('20 plans that read a text 600 times', 8, `(${bigText}${' | basename'.repeat(600)} | length) > 0`),
  plans('20 plans that sort numbers', 40, `(${bigList} | sort | reverse | sort | length) > 0`),
  plans('20 plans that compare lists', 100, `${'job.a == job.b || '.repeat(30)}true`, {
    a: numbers,
    b: [...numbers.slice(1), -1],
  }),
  plans('20 plans of 1,000 small conditions', 1_000, '(job.a | sort | unique | length) > 0', {
    a: numbers.slice(0, 200),
  }),
  plans('20 plans that tell of 2,000 keys', 200, 'job.none == 1', {
    ...Object.fromEntries(list(2_000, (at) => [`k${at}`, at])),
  }),
];

/** Of 100 runs in one request, each as dear as it may be. */
const keys: Attack = {
  name: '5 times 100 concurrency keys',
  play: (target) => {
    const concurrency = { key: `{{ job.a | sort | reverse | length }}`, limit: 1, on_limit: 'queue' };
    const definition = { pipeline: 'keys', version: '1', concurrency, steps: [{ id: 'a', wait: '1d' }] };
    const runs = list(100, () => ({ definition, job: { a: numbers.slice(0, 1_000) } }));
    return count(list(5, () => post(target, '/v1/runs/bulk', { runs })));
  },
};

/** They cost little for usual inputs, so they are registered; their addresses have no listener. */
const prices: Attack = {
  name: '100 calls priced by 20 expressions',
  play: async (target) => {
    const name = 'freezing.price';
    const registrations = list(20, (at) => {
      const endpoint = `http://127.0.0.1:${20_000 + at}`;
      const worst_case = `{{ ${at} + (input.text | lower | upper | length) * 0.000000001 }}`;
      const cost_model = { type: 'per_call', rate_usd: 1, worst_case };
      const addresses = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
      return { name, version: '1.0.0', ...addresses, tags: [], cost_model, settle: 'reported' };
    });
    await count(registrations.map((one) => post(target, '/v1/capabilities', one)));
    const input = { text: 'x'.repeat(100_000) };
    const ask = (at: number): Promise<string> =>
      at % 2 === 0
        ? post(target, '/v1/route', { capability: name, input })
        : post(target, `/v1/capabilities/${name}/exec`, { input, timeout_ms: 1_000 });
    try {
      return await count(list(100, ask));
    } finally {
      const remove = ({ endpoint }: { endpoint: string }) =>
        send(target, `/v1/capabilities/${name}`, { method: 'DELETE', body: JSON.stringify({ endpoint }) });
      await count(registrations.map(remove));
    }
  },
};

/** Each of a hundred skills matches the job, and none gives an accepted result. */
const skills: Attack = {
  name: '20 jobs that try 100 templates',
  play: async (target) => {
    const template = `{{ input.text${' | lower | upper'.repeat(40)} | length }}`;
    const made = list(100, (at) =>
      post(target, '/skills', {
        pattern: { job_type: 'freezing', repo_signals: ['texts'] },
        instructions: `Read the text ${at} times`,
        source: 'human-fix',
        template,
      }),
    );
    await count(made);
    const signals = ['texts'];
    const context = { text: 'x'.repeat(100_000) };
    const job = {
      level: 0,
      job_type: 'freezing',
      prompt: 'x',
      context,
      signals,
      result_schema: { type: 'object' },
    };
    return count(list(20, () => post(target, '/execute', job)));
  },
};

/** Those of other kinds of work are added to this list: one entry for each kind. */
export const freezingAttacks: readonly Attack[] = [...expressions, keys, prices, skills];

/** What `/livez` takes beside nothing, for comparison. */
export const calm: Attack = {
  name: 'nothing',
  play: async (): Promise<Answers> => {
    await sleep(2_000);
    return new Map();
  },
};
