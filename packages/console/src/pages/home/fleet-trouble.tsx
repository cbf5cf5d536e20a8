import { describeDrain } from '@capstan/core/fleet/instance-states';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { capabilitiesQuery } from '../../api/capabilities.ts';
import { callsHealthQuery } from '../../api/health.ts';
import { shortEndpoint } from '../../decision/lanes-model.ts';
import { type InstanceHealth, marksOfCalls } from '../../health/health-model.ts';
import { ResultMarks } from '../../health/result-marks.tsx';
import { usePolling } from '../../live/live.tsx';
import { linkClass, Panel } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import type { StateLook } from '../../shared/state.ts';
import { LookMark, StateMark } from '../../shared/state-mark.tsx';

/** Its process is up, and gets no calls. */
const noCalls: StateLook = { icon: 'triangle-alert', word: 'no calls', tone: 'failed' };

/** Instances that cannot be called, each with the reason. */
export function FleetTrouble(): ReactElement {
  const query = useQuery({ ...capabilitiesQuery(), refetchInterval: usePolling() });
  const health = useQuery(callsHealthQuery()).data?.items ?? [];
  const lastOf = (name: string, endpoint: string): InstanceHealth['last'] =>
    health.find((one) => one.name === name && one.endpoint === endpoint)?.last ?? [];
  return (
    <Panel
      title="Instances"
      isTight
      actions={
        <Link to="/capabilities" className={`${linkClass} text-sm`}>
          Fleet
        </Link>
      }
    >
      <QueryView query={query}>
        {({ items }) => {
          const all = items
            .flatMap(({ instances }) => instances)
            .filter(({ state }) => state !== 'deregistered');
          const ill = all.filter(({ state, breaker }) => state !== 'up' || breaker.state !== 'closed');
          return (
            <>
              <p className="px-4 py-3 text-sm">
                <span className="figure font-semibold">
                  {all.length - ill.length} of {all.length}
                </span>{' '}
                <span className="text-muted">up, of {items.length} capabilities</span>
              </p>
              {ill.length === 0 ? null : (
                <ul aria-label="Instances in trouble" className="divide-y divide-line border-t border-line">
                  {ill.slice(0, 8).map(({ name, endpoint, state, reason, drain, breaker }) => (
                    <li key={`${name} ${endpoint}`} className="px-4 py-2 text-sm">
                      <Link
                        to="/capabilities/$name"
                        params={{ name }}
                        search={{ instance: endpoint }}
                        className="flex justify-between gap-2 hover:underline"
                      >
                        <span className="min-w-0 truncate font-medium">
                          {name}{' '}
                          <span className="font-mono text-xs font-normal text-muted">
                            {shortEndpoint(endpoint)}
                          </span>
                        </span>
                        {breaker.state === 'closed' ? (
                          <StateMark state={state} />
                        ) : (
                          <LookMark look={noCalls} />
                        )}
                      </Link>
                      <p className="flex justify-between gap-2 text-xs text-muted">
                        <span>
                          {(drain === undefined ? reason : describeDrain(drain)) ??
                            (breaker.state === 'closed' ? '' : 'failed too often; its breaker is open')}
                        </span>
                        <ResultMarks
                          label={`Last calls of ${name}`}
                          marks={marksOfCalls(lastOf(name, endpoint))}
                        />
                      </p>
                    </li>
                  ))}
                </ul>
              )}
            </>
          );
        }}
      </QueryView>
    </Panel>
  );
}
