import type { Db } from '../connect.ts';
import type { Claim } from './attempt.ts';

/**
 * Takes the place of a claim whose answer was lost, so that it can never be made: the row says that nothing was sent, and
 * belongs to no key, run or budget. A claim that is under way is waited for. @returns false: it was made before
 */
export async function preventClaim(db: Db, claim: Claim): Promise<boolean> {
  const { rowCount } = await db.raw<{ rowCount: number }>(
    `insert into attempt (attempt_id, project_id, key, number, capability, instance_id, endpoint, state, token,
       lease_until, cost_type, rate_usd, reserved_nano, settled_nano, certainty, ambiguity, duration_ms, error,
       finished_at)
     values (:attempt_id, :project_id, :attempt_id, 1, :capability, :instance_id, :endpoint, 'released', :token,
       clock_timestamp(), :cost_type, :rate_usd, 0, 0, 'exact', 'not_sent', 0,
       '{"code": "unavailable", "message": "the claim was not answered"}', clock_timestamp())
     on conflict (attempt_id) do nothing`,
    {
      attempt_id: claim.attempt_id,
      project_id: claim.project_id,
      capability: claim.capability,
      instance_id: claim.instance_id,
      endpoint: claim.decision.chosen ?? '',
      token: claim.token,
      cost_type: claim.cost_type,
      rate_usd: claim.rate_usd,
    },
  );
  return rowCount === 1;
}
