/**
 * Paid instances in this process that answer hashes, and a journal of every `/exec`: when it began, when it ended, and
 * what was answered. The player of a fault decides what they do with the next calls.
 */
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { hashOf } from '../../test/support/hash-chain.ts';
import type { Journaled } from '../../test/support/invariants.ts';
import type { NetworkNamespace } from '../../test/support/network-namespace.ts';
import type { Api } from '../package/api.ts';
import { type Call, type Member, type OpenCall, startMember } from './member.ts';

/** A line of the journal. An end without status: the caller hung up, or was cut off after all was done. */
export interface Line extends Pick<Call, 'port' | 'key' | 'number'> {
  readonly at: number;
  readonly kind: 'begin' | 'end';
  readonly status?: number | null;
  /** Of the run. */
  readonly n: number;
  readonly step: string;
  /** What was worked out, whether or not it arrived. */
  readonly output?: JsonObject;
}

/** cut: it does the work, and its answer is lost. hold: nothing, until the test completes it by hand. */
export type Deed = 'answer' | 'cut' | 'refuse' | 'hold';

export interface Fleet extends Journaled {
  readonly capability: string;
  readonly members: readonly Member[];
  readonly lines: readonly Line[];
  /** Decides about the next calls; without it they are answered. */
  decide(deed: (call: OpenCall) => Deed | Promise<Deed>): void;
  stop(): Promise<void>;
}

export interface FleetOptions {
  readonly capability: string;
  readonly count?: number;
  readonly minMs?: number;
  readonly maxMs?: number;
  /** The answer; default: the hash of the input. */
  readonly work?: (input: JsonObject) => JsonObject;
  /** Of the first instance, the second, and so on. */
  readonly namespaces?: readonly NetworkNamespace[];
}

const callUsd = 0.001;
const costModel = { type: 'per_call', rate_usd: callUsd } as const;
const most = 100;

class Journal {
  readonly lines: Line[] = [];
  readonly #open = new Map<string, Call>();

  #write({ port, key, number, input }: Call, rest: Pick<Line, 'kind' | 'status' | 'output'>): void {
    this.lines.push({
      at: Date.now(),
      port,
      key,
      number,
      n: Number(input.n),
      step: String(input.id),
      ...rest,
    });
  }

  begin(call: Call): void {
    this.#open.set(`${call.key} ${call.number}`, call);
    this.#write(call, { kind: 'begin' });
  }

  /** A second end of a call is ignored. */
  end(call: Call, status: number | null, output?: JsonObject): void {
    if (!this.#open.delete(`${call.key} ${call.number}`)) return;
    this.#write(call, { kind: 'end', status, ...(output === undefined ? {} : { output }) });
  }
}

function carryOut(call: OpenCall, deed: Deed, { journal, output }: { journal: Journal; output: JsonObject }) {
  if (deed === 'hold') return;
  if (deed === 'refuse') {
    journal.end(call, 503);
    call.answer(503, { ok: false, error: 'not now' });
  } else if (deed === 'cut') {
    journal.end(call, null, output);
    call.cut();
  } else {
    journal.end(call, 200, output);
    call.answer(200, { ok: true, output });
  }
}

async function register(api: Api, spec: { name: string; version: string }, member: Member): Promise<void> {
  const { endpoint } = member;
  const { status, body } = await api.request('POST', '/v1/capabilities', {
    ...spec,
    endpoint,
    spec_url: `${endpoint}/spec`,
    health_url: `${endpoint}/health`,
    cost_model: costModel,
    tags: ['local'],
    max_concurrency: most,
  });
  if (status >= 300) throw new Error(`registration of ${endpoint}: ${status} ${JSON.stringify(body)}`);
}

/** Resolves when all are registered. */
export async function startFleet(api: Api, options: FleetOptions): Promise<Fleet> {
  const { capability: name, count = 2, minMs = 50, maxMs = 400 } = options;
  const { work = (input) => ({ h: hashOf(input) }), namespaces = [] } = options;
  const named = { name, version: '1.0.0' };
  const schemas = { description: name, input: { type: 'object' }, output: { type: 'object' } };
  const spec = { ...named, ...schemas, cost_model: costModel };
  const journal = new Journal();
  let decide: Parameters<Fleet['decide']>[0] = () => 'answer';
  const take = async (call: OpenCall): Promise<void> => {
    journal.begin(call);
    const deed = await decide(call);
    const pause = deed === 'refuse' ? 0 : minMs + Math.random() * (maxMs - minMs);
    setTimeout(() => carryOut(call, deed, { journal, output: work(call.input) }), pause);
  };
  const hungUp = (call: Call): void => journal.end(call, null);
  const starts = Array.from({ length: count }, (_, at) =>
    startMember({ spec, take, hungUp, namespace: namespaces[at] }),
  );
  const members = await Promise.all(starts);
  await Promise.all(members.map((member) => register(api, named, member)));
  const facts = { name, cost_model: costModel, max_concurrency: most, tags: ['local'] };
  const pace = { minMs, maxMs, failureShare: 0 };
  return {
    capability: name,
    members,
    lines: journal.lines,
    instances: members.map(({ port, endpoint }) => ({ ...facts, ...pace, port, endpoint })),
    journal: async () => journal.lines,
    decide: (deed) => {
      decide = deed;
    },
    stop: async () => {
      const take = ({ endpoint }: Member) => api.request('DELETE', `/v1/capabilities/${name}`, { endpoint });
      await Promise.all(members.map(take));
      await Promise.all(members.map((member) => member.crash()));
    },
  };
}
