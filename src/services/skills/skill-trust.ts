/** Only admin keys vouch for what they send: what others send or change is a candidate, which models see as a hint. */
import type { SkillPatch, SkillTrust } from '../../contracts/skill.ts';
import { AppError } from '../../errors/app-error.ts';
import type { Caller } from '../access/caller.ts';

export function isAdmin({ scopes }: Caller): boolean {
  return scopes.has('admin');
}

export function trustOf(caller: Caller): SkillTrust {
  return isAdmin(caller) ? 'trusted' : 'candidate';
}

/**
 * @param isDecision a person decides in a review, which needs a scope of its own
 * @returns null: as it was
 * @throws AppError `forbidden`
 */
export function trustOfPatch(
  caller: Caller,
  { trust }: SkillPatch,
  { isDecision }: { readonly isDecision: boolean },
): SkillTrust | null {
  if (isAdmin(caller)) return trust ?? null;
  if (trust !== undefined)
    throw new AppError('forbidden', `${caller.key_id} is no admin key and may not set trust`);
  return isDecision ? null : 'candidate';
}
