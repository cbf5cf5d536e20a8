import type { Run } from '@capstan/core/contracts/run';
import type { Awaiting } from '@capstan/core/contracts/run-step';
import { expect, it } from 'vitest';
import { openSession } from '../../../src/cli/client/session.ts';
import { showLiveTable } from '../../../src/cli/watch/watch-run.ts';
import { waitFor } from '../../support/wait.ts';
import { serve } from '../support/http-server.ts';
import { aShell } from '../support/shell.ts';

function aRun(awaiting: Awaiting[], cost_usd: number): Run {
  const times = { created_at: '2026-01-01T00:00:00Z', started_at: '2026-01-01T00:00:00Z', finished_at: null };
  return {
    run_id: 'run_1',
    job_id: 'job_1',
    pipeline: 'outer',
    version: '1.0.0',
    state: 'running',
    awaiting,
    priority: 'standard',
    budget_ceiling_usd: 1,
    cost_usd,
    reserved_usd: 0,
    labels: {},
    ...times,
    steps: [
      {
        id: 'title',
        pipeline: 'inner@1.0.0',
        state: 'waiting',
        awaiting: 'run',
        attempts: 0,
        revision: 0,
        cost_usd,
        started_at: times.started_at,
        finished_at: null,
      },
    ],
    links: { self: '/v1/runs/run_1', events: '/v1/runs/run_1/events' },
  };
}

it('shows the cost of the child run and the reason for which it waits, which the log of this run lacks', async () => {
  let run = aRun(['run'], 0);
  const url = await serve((request, response) => {
    const isLog = request.url?.startsWith('/v1/runs/run_1/events') === true;
    response.writeHead(200, { 'content-type': isLog ? 'text/event-stream' : 'application/json' });
    if (isLog) response.write(': open\n\n');
    else response.end(JSON.stringify(run));
  });
  const { shell, seen } = aShell({ columns: 120 });
  const stop = new AbortController();
  const showing = showLiveTable(await openSession({ url, key: 'k' }, shell), 'run_1', stop.signal);
  await waitFor('the first table', () => seen.stdout.includes('Waiting for a child run'));
  run = aRun(['budget', 'run'], 0.25);
  await waitFor('the table of what is below', () => seen.stdout.includes('Waiting for budget'));
  expect(seen.stdout).toContain('$0.25');
  stop.abort();
  await showing;
});
