import type { CallRecord } from '@capstan/core/contracts/call';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { nameKeys, useKeys } from '../api/key-names.ts';
import { shortEndpoint } from '../decision/lanes-model.ts';
import { Moment } from '../shared/ago.tsx';
import { Breakable } from '../shared/breakable.tsx';
import { formatDuration, formatUsd } from '../shared/format.ts';
import { linkClass, tableClass } from '../shared/parts.tsx';
import { LookMark } from '../shared/state-mark.tsx';
import { describeTokens, lookOfCall } from './call-model.ts';

/** Calls, each with a link to its own page. */
export function CallTable({ calls }: { readonly calls: readonly CallRecord[] }): ReactElement {
  const nameOfKey = nameKeys(useKeys());
  return (
    <table className={tableClass}>
      <thead>
        <tr>
          <th>At</th>
          <th className="max-sm:hidden">Outcome</th>
          <th>Capability</th>
          <th className="max-lg:hidden">Payer</th>
          <th className="max-lg:hidden">Of</th>
          <th className="max-md:hidden">Tokens</th>
          <th className="text-right! max-sm:hidden">Took</th>
          <th className="text-right!">Cost</th>
        </tr>
      </thead>
      <tbody>
        {calls.map((call) => (
          <tr key={call.decision_id}>
            <td>
              <Link
                to="/decisions/$decisionId"
                params={{ decisionId: call.decision_id }}
                className={linkClass}
              >
                <Moment at={call.at} />
              </Link>
              <span className="block sm:hidden">
                <Ending call={call} />
              </span>
            </td>
            <td className="max-sm:hidden">
              <Ending call={call} />
            </td>
            <td>
              <Breakable name={call.capability} />
              <span className="block text-xs text-muted">
                <Breakable name={call.model === null ? shortEndpoint(call.endpoint) : call.model} />
              </span>
            </td>
            <td className="max-lg:hidden">
              {call.key_id === null ? '' : (nameOfKey(call.key_id) ?? call.key_id)}
              <span className="block text-xs text-muted">{describePayer(call)}</span>
            </td>
            <td className="max-lg:hidden">
              <Origin call={call} />
            </td>
            <td className="figure text-xs max-md:hidden">{describeTokens(call.tokens) ?? '–'}</td>
            <td className="figure text-right! max-sm:hidden">
              {call.duration_ms === null ? '–' : formatDuration(call.duration_ms)}
            </td>
            <td className="figure text-right!">{call.cost_usd === null ? '–' : formatUsd(call.cost_usd)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Ending({ call }: { readonly call: CallRecord }): ReactElement {
  return (
    <span title={call.error?.message}>
      <LookMark look={lookOfCall(call)} />
      {call.error === null ? null : (
        <span className="block text-xs break-all text-muted">{call.error.code}</span>
      )}
    </span>
  );
}

/** `anna, team=ads` */
export function describePayer({ user, labels }: Pick<CallRecord, 'user' | 'labels'>): string {
  const said = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return [...(user === null ? [] : [user]), ...said].join(', ');
}

/** The run and step of a call, or that it is a direct one. */
export function Origin({
  call: { run_id, step_id, pipeline },
}: {
  readonly call: Pick<CallRecord, 'run_id' | 'step_id' | 'pipeline'>;
}): ReactElement {
  if (run_id === null) return <span className="text-muted">direct</span>;
  return (
    <Link
      to="/runs/$runId"
      params={{ runId: run_id }}
      // A call of a run without a step is one of its ladders.
      search={step_id === null ? { view: 'log' } : { step: step_id, tab: 'decision' }}
      className={linkClass}
    >
      {step_id ?? 'a correction'}
      {pipeline === null ? '' : ` of ${pipeline}`}
    </Link>
  );
}
