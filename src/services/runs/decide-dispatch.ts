/** Whether the steps of a run are queued, from the router's picture of the fleet: nobody is asked, nothing is read. */
import type { DecidedRoute, DispatchRoute } from '../../contracts/dispatch.ts';
import { chooseDispatch } from '../../core/routing/choose-dispatch.ts';
import type { FleetPoller } from '../routing/fleet/fleet-poller.ts';

/** Once per run, so that a capability that has become slow is queued from the next run on. */
export type DecideDispatch = (routes: readonly DispatchRoute[]) => readonly DecidedRoute[];

export function createDecideDispatch(fleet: Pick<FleetPoller, 'of'>): DecideDispatch {
  return (routes) =>
    routes.map((route) => {
      const { capability, capability_version: versionRange = null, tags = [] } = route;
      return { ...route, ...chooseDispatch(fleet.of(capability).instances, { versionRange, tags }) };
    });
}
