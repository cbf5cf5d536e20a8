/** The registry as tests ask it: its functions with their context. */
import type { DeregisterRequest, HeartbeatRequest, Registration } from '@capstan/core/contracts/capability';
import { deregisterInstance, type RegistryActor } from '../../src/use-cases/registry/deregistration.ts';
import { reportRefused } from '../../src/use-cases/registry/examination.ts';
import { takeHeartbeat } from '../../src/use-cases/registry/heartbeat.ts';
import { type RegistryCtx, registerInstance } from '../../src/use-cases/registry/registration.ts';
import { getCapability, listCapabilities } from '../../src/use-cases/registry/registry-listing.ts';
import { probeDueInstances, vetInstance } from '../../src/use-cases/registry/vetting.ts';

export function registryOf(ctx: RegistryCtx) {
  return {
    register: (projectId: string, registration: Registration) =>
      registerInstance(ctx, projectId, registration),
    heartbeat: (projectId: string, name: string, body: HeartbeatRequest) =>
      takeHeartbeat(ctx, projectId, { name, body }),
    deregister: (by: RegistryActor, name: string, body: DeregisterRequest) =>
      deregisterInstance(ctx, by, { name, body }),
    list: (request: Parameters<typeof listCapabilities>[2], project_id = 'prj_one') =>
      listCapabilities(
        ctx,
        { project_id, key_id: 'key_one', scopes: new Set(), projects: [project_id] },
        request,
      ),
    get: (name: string, projectId = 'prj_one') => getCapability(ctx, { projectId, name }),
    reportRefused: (instanceId: string) => reportRefused(ctx, instanceId),
    vet: (instanceId: string) => vetInstance(ctx, instanceId),
    probeDue: (limit?: number) => probeDueInstances(ctx, limit),
    close: ctx.probing.close,
  };
}

export type TestRegistry = ReturnType<typeof registryOf>;
