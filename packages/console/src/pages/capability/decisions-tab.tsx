import type { DecisionListed } from '@capstan/core/contracts/decision';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { decisionsQuery } from '../../api/capabilities.ts';
import { lookOfCall } from '../../calls/call-model.ts';
import { shortEndpoint } from '../../decision/lanes-model.ts';
import { without } from '../../decision/without-model.ts';
import { Ago } from '../../shared/ago.tsx';
import { formatDuration, formatUsd } from '../../shared/format.ts';
import { EmptyState, fieldClass, linkClass, Panel, tableClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { LookMark } from '../../shared/state-mark.tsx';

export function DecisionsTab({ name }: { readonly name: string }): ReactElement {
  const query = useQuery(decisionsQuery(name));
  return (
    <QueryView query={query}>
      {({ items }) =>
        items.length === 0 ? (
          <EmptyState title="No calls yet">
            Each call's decision is kept with what it was made from, and shows here.
          </EmptyState>
        ) : (
          <div className="flex flex-col gap-4">
            <Without decisions={items} />
            <Panel isTight>
              <DecisionTable decisions={items} />
            </Panel>
          </div>
        )
      }
    </QueryView>
  );
}

/** The decisions made again without one of the instances. */
function Without({ decisions }: { readonly decisions: readonly DecisionListed[] }): ReactElement {
  const [endpoint, setEndpoint] = useState('');
  const endpoints = [...new Set(decisions.map(({ chosen }) => chosen).filter((one) => one !== null))];
  const result = endpoint === '' ? null : without(decisions, endpoint);
  return (
    <Panel>
      <div className="flex flex-wrap items-center gap-2 text-sm">
        Without
        <select
          aria-label="Without which instance"
          className={fieldClass}
          value={endpoint}
          onChange={({ target }) => setEndpoint(target.value)}
        >
          <option value="">choose an instance</option>
          {endpoints.map((one) => (
            <option key={one} value={one}>
              {shortEndpoint(one)}
            </option>
          ))}
        </select>
        {result === null ? (
          <span className="text-muted">the last {decisions.length} calls would have gone elsewhere.</span>
        ) : (
          <span aria-live="polite">
            <strong className="figure">{result.moved}</strong> of {decisions.length} calls would have gone
            elsewhere and cost <strong className="figure">{formatUsd(Math.abs(result.moreUsd))}</strong>{' '}
            {result.moreUsd < 0 ? 'less' : 'more'}; <strong className="figure">{result.stranded}</strong>{' '}
            would have had no instance.
            <span className="text-muted"> An estimate: queues would differ.</span>
          </span>
        )}
      </div>
    </Panel>
  );
}

function DecisionTable({ decisions }: { readonly decisions: readonly DecisionListed[] }): ReactElement {
  return (
    <table className={tableClass}>
      <thead>
        <tr>
          <th>When</th>
          <th>Chosen</th>
          <th>Outcome</th>
          <th className="max-sm:hidden">Step</th>
          <th className="text-right!">Took</th>
          <th className="text-right!">Cost</th>
        </tr>
      </thead>
      <tbody>
        {decisions.map(({ decision_id, at, chosen, run_id, step_id, duration_ms, settled_usd, ...end }) => (
          <tr key={decision_id}>
            <td>
              <Link to="/decisions/$decisionId" params={{ decisionId: decision_id }} className={linkClass}>
                <Ago at={at} />
              </Link>
            </td>
            <td className="font-mono text-xs">{chosen === null ? 'none' : shortEndpoint(chosen)}</td>
            <td>
              <LookMark look={lookOfCall(end)} />
              {end.error === null ? null : <span className="block text-xs text-muted">{end.error}</span>}
            </td>
            <td className="max-sm:hidden">
              {run_id === null ? (
                <span className="text-muted">direct call</span>
              ) : (
                <Link
                  to="/runs/$runId"
                  params={{ runId: run_id }}
                  // A call of a run without a step is one of its ladders.
                  search={step_id === null ? { view: 'log' } : { step: step_id, tab: 'decision' }}
                  className={linkClass}
                >
                  {step_id ?? 'a correction in its run'}
                </Link>
              )}
            </td>
            <td className="figure text-right!">{duration_ms === null ? '–' : formatDuration(duration_ms)}</td>
            <td className="figure text-right!">{settled_usd === null ? '–' : formatUsd(settled_usd)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
