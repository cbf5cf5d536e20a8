import type { CallDetail } from '@capstan/core/contracts/call';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { callQuery } from '../../api/calls.ts';
import { decisionQuery } from '../../api/capabilities.ts';
import { nameKeys, useKeys } from '../../api/key-names.ts';
import { isStatus } from '../../api/problem-error.ts';
import { describeTokens, lookOfCall } from '../../calls/call-model.ts';
import { describePayer, Origin } from '../../calls/call-table.tsx';
import { CallContents } from '../../calls/conversation.tsx';
import { DecisionView } from '../../decision/decision-view.tsx';
import { Moment } from '../../shared/ago.tsx';
import { formatDuration, formatUsd } from '../../shared/format.ts';
import { IdLink } from '../../shared/id-link.tsx';
import { EmptyState, Facts, PageHead, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { LookMark } from '../../shared/state-mark.tsx';

/** One call: who paid, what it used, why it went where it went, and its contents where they are kept. */
export function DecisionPage(): ReactElement {
  const { decisionId } = useParams({ from: '/decisions/$decisionId' });
  const query = useQuery(callQuery(decisionId));
  if (isStatus(query.error, 404))
    return (
      <EmptyState title="This call is not kept">
        <p className="wrap-anywhere">{decisionId}</p>
        It is too old, of another project, or no instance could take it: such a decision is only in the
        answer.
      </EmptyState>
    );
  return <QueryView query={query}>{(call) => <CallOpen call={call} />}</QueryView>;
}

function CallOpen({ call }: { readonly call: CallDetail }): ReactElement {
  return (
    <>
      <p className="text-xs text-muted">
        <Link to="/calls" className="hover:underline">
          Calls
        </Link>
      </p>
      <PageHead
        title={`Call of ${call.capability}`}
        about={<span className="font-mono text-xs wrap-anywhere">{call.decision_id}</span>}
        actions={<LookMark look={lookOfCall(call)} isFilled />}
      />
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <div className="flex flex-col gap-4">
          <Panel title="Call">
            {call.error === null ? null : (
              <p className="mb-3 text-sm text-failed wrap-anywhere">
                {call.error.code}: {call.error.message}
              </p>
            )}
            <CallFacts call={call} />
          </Panel>
          {call.has_content ? <CallContents call={call} /> : <NoContents />}
        </div>
        <Panel title="Why there">
          <Why decisionId={call.decision_id} />
        </Panel>
      </div>
    </>
  );
}

function CallFacts({ call }: { readonly call: CallDetail }): ReactElement {
  const { key_id, cached_from, saved_usd, certainty, number } = call;
  const nameOfKey = nameKeys(useKeys());
  const marks = describePayer(call);
  return (
    <Facts
      facts={[
        ['at', <Moment key="at" at={call.at} />],
        ['took', call.duration_ms === null ? null : formatDuration(call.duration_ms)],
        ['key', key_id === null ? null : (nameOfKey(key_id) ?? key_id)],
        ['for', marks === '' ? null : marks],
        ['of', <Origin key="of" call={call} />],
        ['instance', call.endpoint],
        ['attempt', number === 1 ? null : number],
        ['model', call.model],
        ['tokens', describeTokens(call.tokens)],
        [
          'cost',
          call.cost_usd === null
            ? 'not yet'
            : `${formatUsd(call.cost_usd)}${certainty === 'estimated' ? ' (estimated)' : ''}`,
        ],
        ['cached from', cached_from === null ? null : <IdLink key="from" id={cached_from} />],
        ['saved', saved_usd === 0 ? null : formatUsd(saved_usd)],
      ]}
    />
  );
}

function NoContents(): ReactElement {
  return (
    <Panel title="Contents">
      <p className="text-sm text-muted">
        Not kept.{' '}
        <Link to="/settings" search={{ tab: 'projects' }} className="underline">
          The settings
        </Link>{' '}
        of the project switch that on, for calls from then on.
      </p>
    </Panel>
  );
}

function Why({ decisionId }: { readonly decisionId: string }): ReactElement {
  const query = useQuery(decisionQuery(decisionId));
  if (isStatus(query.error, 404))
    return <p className="text-sm text-muted">The candidates of this call are no longer kept.</p>;
  return <QueryView query={query}>{(decision) => <DecisionView decision={decision} isOwnPage />}</QueryView>;
}
