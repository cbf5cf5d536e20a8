/** Ends reviews that nobody decided in time, with a line in the audit log each. */
import { insertAudit } from '../../db/access/audit.ts';
import type { Db } from '../../db/connect.ts';
import { expireReviews } from '../../db/review/review-delivery.ts';

export interface Expiring {
  readonly limit: number;
  /** Only this one; default: any. */
  readonly review_id?: string;
}

/** By the clock of the database; a decision that comes first wins. @returns how many */
export function expireOverdueReviews(db: Db, { limit, review_id }: Expiring): Promise<number> {
  return db.transaction(async (trx) => {
    const expired = await expireReviews(trx, limit, review_id);
    for (const { project_id, review_id: subject, version, round } of expired) {
      const act = { project_id, actor: 'maintenance', action: 'review.expired', subject };
      await insertAudit(trx, { ...act, data: { version, round } });
    }
    return expired.length;
  });
}
