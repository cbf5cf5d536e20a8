/** Why an instance cannot take a call, or null when it can. The first reason that applies is shown. */
import { satisfies, validRange } from 'semver';
import type { Verdict } from '../../contracts/decision.ts';
import type { InstanceSnapshot, RouteRequest } from './types.ts';

const isVersionWanted = (version: string, range: string | null): boolean =>
  range === null ||
  version === range ||
  (validRange(range) !== null && satisfies(version, range, { loose: true }));

export const excludeInstance = (
  instance: InstanceSnapshot,
  request: RouteRequest,
  costUsd: number,
): Verdict | null => {
  if (instance.state === 'deregistered') return 'draining';
  if (instance.state === 'down') return 'down';
  if (instance.state === 'quarantined') return 'quarantined';
  if (!isVersionWanted(instance.version, request.versionRange)) return 'wrong_version';
  if (!request.tags.every((tag) => instance.tags.includes(tag))) return 'tag_mismatch';
  if (request.tried.has(instance.instance_id)) return 'already_tried';
  if (request.refusing.has(instance.instance_id)) return 'input_invalid';
  if (request.ceilingUsd !== null && costUsd > request.ceilingUsd) return 'over_ceiling';
  return null;
};
