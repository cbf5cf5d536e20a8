/** One replay: so many requests at once under one ceiling, through some servers, until each has ended or has no room. */
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { request } from '../router/register.ts';
import type { CapstanServer } from '../router/systems.ts';
import { costOf, model, type Provider } from './provider.ts';
import type { ChatRequest } from './trace.ts';

export interface Scenario {
  /** The ceiling by the true cost of all requests; null: there is none. */
  readonly ceiling: number | null;
  /** The answer that its caller allows, tokens. */
  readonly most: number;
  /** Whether holds grow, or each call holds its worst case. */
  readonly grows: boolean;
  readonly servers: number;
}

export interface Replayed extends Scenario {
  readonly finished: number;
  readonly cut: number;
  /** Of the ceiling: what went into finished answers, and what was spent in all. */
  readonly useful: number;
  readonly spent: number;
  /** Nano-USD above the ceiling, by the ledger and by the provider. */
  readonly over: number;
  readonly seconds: number;
  /** Pieces per 1,000 tokens. */
  readonly pieces: number;
}

interface World {
  readonly servers: readonly CapstanServer[];
  readonly operator: CapstanServer;
  readonly databaseUrl: string;
  readonly provider: Provider;
  readonly speed: number;
}

interface ExecBody {
  readonly output?: { readonly finish_reason: string };
  readonly code?: string;
}

type Ended = 'finished' | 'cut' | 'refused';

/** A caller who is refused for now asks again after this time, ms. */
const againMs = 200;

async function ask(server: CapstanServer, body: object, speed: number): Promise<Ended> {
  for (;;) {
    const answer = await fetch(`${server.url}/v1/capabilities/${model.name}/exec`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const { output, code } = (await answer.json()) as ExecBody;
    if (answer.status === 200) return output?.finish_reason === 'length' ? 'cut' : 'finished';
    if (code === 'budget_exhausted') return 'refused';
    if (answer.status !== 429) throw new Error(`a call was answered ${answer.status} ${code}`);
    await pause(againMs / speed);
  }
}

/** A project with a limit of its own, and its key. */
async function addProject({ operator }: World, limitUsd: number | null) {
  const created = await request(operator, 'POST', '/v1/projects', {
    name: 'replay',
    daily_limit_usd: limitUsd ?? 0,
  });
  const { project_id } = (await created.json()) as { project_id: string };
  const made = await request(operator, 'POST', '/v1/keys', {
    name: 'replay',
    scopes: ['capability:call'],
    projects: [project_id],
  });
  const { key } = (await made.json()) as { key: string };
  return { projectId: project_id, apiKey: key };
}

async function readBooks(databaseUrl: string, projectId: string) {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    for (;;) {
      const { rows } = await client.query(
        `select count(*) filter (where finished_at is null)::int as open, coalesce(sum(settled_nano), 0)::float8 as spent,
           coalesce(sum(pieces), 0)::float8 as pieces from attempt where project_id = $1`,
        [projectId],
      );
      if (rows[0].open === 0) return rows[0] as { spent: number; pieces: number };
      await pause(20);
    }
  } finally {
    await client.end();
  }
}

export async function replay(
  world: World,
  requests: readonly ChatRequest[],
  scenario: Scenario,
): Promise<Replayed> {
  const { ceiling, most, grows } = scenario;
  const trueUsd = requests.reduce((sum, one) => sum + costOf(one), 0);
  const limitUsd = ceiling === null ? null : Number((trueUsd * ceiling).toFixed(9));
  const { projectId, apiKey } = await addProject(world, limitUsd);
  world.provider.takeBill();
  const beganAt = performance.now();
  const used = world.servers.slice(0, scenario.servers);
  const ended = await Promise.all(
    requests.map((input, at) => {
      const server = { ...(used[at % used.length] as CapstanServer), apiKey };
      const body = { input: { ...input, most }, on_budget: grows ? 'stop' : 'refuse', timeout_ms: 600_000 };
      return ask(server, body, world.speed);
    }),
  );
  const seconds = ((performance.now() - beganAt) / 1_000) * world.speed;
  const books = await readBooks(world.databaseUrl, projectId);
  const billed = world.provider.takeBill() * 1e9;
  const limit = limitUsd === null ? Number.POSITIVE_INFINITY : limitUsd * 1e9;
  const finished = requests.filter((_, at) => ended[at] === 'finished');
  const goodUsd = finished.reduce((sum, one) => sum + costOf(one), 0);
  const tokens = requests.reduce((sum, { outputTokens }) => sum + outputTokens, 0);
  return {
    ...scenario,
    finished: finished.length / requests.length,
    cut: ended.filter((end) => end === 'cut').length / requests.length,
    useful: goodUsd / (limitUsd ?? trueUsd),
    spent: books.spent / (limitUsd === null ? trueUsd * 1e9 : limit),
    over: Math.round(Math.max(0, books.spent - limit, billed - limit)),
    seconds,
    pieces: (books.pieces * 1_000) / tokens,
  };
}
