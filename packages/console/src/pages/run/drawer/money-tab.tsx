import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { Held } from '../../../decision/held.tsx';
import { formatUsd } from '../../../shared/format.ts';
import { linkClass, tableClass } from '../../../shared/parts.tsx';
import type { StepTabProps } from './step-tab-props.ts';

/** The reservation and the final cost of each delivery. */
export function MoneyTab({ step, runId }: StepTabProps): ReactElement {
  return (
    <>
      <p className="mb-2 text-sm">
        This step has cost <span className="figure font-semibold">{formatUsd(step.cost_usd)}</span>.{' '}
        <Link to="/costs/ledger" search={{ run_id: runId }} className={linkClass}>
          The run's ledger
        </Link>
      </p>
      <table className={tableClass}>
        <thead>
          <tr>
            <th>Attempt</th>
            <th className="text-right!">Reserved</th>
            <th className="text-right!">Settled</th>
            <th>Is</th>
          </tr>
        </thead>
        <tbody>
          {step.attempts.map(({ attempt_id, decision, cost_usd, certainty }, index) => (
            <tr key={attempt_id}>
              <td>#{index + 1}</td>
              <td className="figure text-right!">
                {decision === null ? '–' : <Held usd={decision.reserved_usd} held={decision} />}
              </td>
              <td className="figure text-right!">{certainty === null ? '–' : formatUsd(cost_usd)}</td>
              <td className="text-muted">
                {certainty ?? 'still reserved'}
                {decision?.stopped === undefined ? '' : ', stopped: no more room in its budgets'}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
