/** Tiers come before scores: the specification's preferred instance first, doubtful ones last. */
import type { InstanceSnapshot } from './types.ts';

const loopback = /^https?:\/\/(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?(\/|$)/;

export const isLocal = ({ tags, endpoint }: InstanceSnapshot): boolean =>
  tags.includes('local') || loopback.test(endpoint);

/** 0 = free, local, up and idle; 1 = up; 2 = suspect. */
export const tierOf = (instance: InstanceSnapshot): number => {
  if (instance.state === 'suspect') return 2;
  const isIdle = instance.held + instance.reported_extra === 0;
  return instance.rate_usd === 0 && isIdle && isLocal(instance) ? 0 : 1;
};
