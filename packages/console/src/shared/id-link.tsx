import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { linkClass } from './parts.tsx';

const pages = [
  [/^run_/, '/runs/$runId', 'runId'],
  [/^rev_/, '/reviews/$reviewId', 'reviewId'],
  [/^dec_/, '/decisions/$decisionId', 'decisionId'],
  [/^skl_/, '/skills/$skillId', 'skillId'],
] as const;

/** An id, as a link if a page shows its object. */
export function IdLink({ id }: { readonly id: string }): ReactElement {
  const page = pages.find(([form]) => form.test(id));
  if (page !== undefined) {
    const [, to, name] = page;
    return (
      <Link to={to} params={{ [name]: id } as never} className={linkClass}>
        {id}
      </Link>
    );
  }
  if (id.startsWith('sch_')) {
    return (
      <Link to="/schedules" className={linkClass}>
        {id}
      </Link>
    );
  }
  return <>{id}</>;
}
