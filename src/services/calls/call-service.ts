/** Direct calls as the API offers them. */
import type { Logger } from 'pino';
import type { ExecRequest } from '../../contracts/decision.ts';
import { type CancelSignal, CancelSource, onCancel } from '../../core/cancellation.ts';
import { type KeyHold, renewKeys } from '../../db/idempotency/idempotency-hold.ts';
import { createLeaseRenewer, type LeaseRenewer } from '../delivery/lease-renewer.ts';
import { type CapabilityLookup, requireCapability } from '../routing/require-capability.ts';
import type { CallCapability } from '../routing/routed-call.ts';
import { createExecCapability } from './exec-capability.ts';
import { createIdempotentCall, type ExecOutcome } from './idempotent-call.ts';
import { createOpenCalls } from './open-calls.ts';

export interface CallOrder {
  readonly projectId: string;
  readonly capability: string;
  readonly request: ExecRequest;
  readonly idempotency: { readonly key: string; readonly bodySha256: Buffer } | null;
  /** Aborts when the caller goes away; without an Idempotency-Key nobody wants the result then. */
  readonly signal: CancelSignal;
}

export interface CallService {
  /** @throws AppError of the routing table; what is kept under an Idempotency-Key comes as an outcome */
  exec(order: CallOrder): Promise<ExecOutcome>;
  /** Ends and settles what is under way. */
  close(): Promise<void>;
}

export interface CallServiceDependencies extends CapabilityLookup {
  readonly callCapability: CallCapability;
  readonly logger: Logger;
}

/** A key that is not renewed for 10 s may be taken over. */
const keyRenewalMs = 2_500;

/** Stops when one of the two does, with its reason. */
function stopWith(one: CancelSignal, other: CancelSignal): CancelSignal {
  const stop = new CancelSource();
  for (const signal of [one, other]) onCancel(signal, () => stop.abort(signal.reason));
  return stop;
}

function createKeeper({ db, logger }: CallServiceDependencies): LeaseRenewer<KeyHold> {
  return createLeaseRenewer<KeyHold>({
    renew: (held) => renewKeys(db, held),
    idOf: ({ holder }) => holder,
    intervalMs: keyRenewalMs,
    retryMs: keyRenewalMs,
    logger,
  });
}

export function createCallService(dependencies: CallServiceDependencies): CallService {
  const { db, callCapability, logger } = dependencies;
  const execCapability = createExecCapability(callCapability);
  const keeper = createKeeper(dependencies);
  const callOnce = createIdempotentCall({ db, keeper, logger });
  const open = createOpenCalls();
  return {
    exec: async ({ projectId, capability, request, signal, idempotency }) => {
      await requireCapability(dependencies, capability, '/path/name');
      if (idempotency === null) {
        const answer = await open.run(signal, (stop) =>
          execCapability({ projectId, capability, request, key: null, signal: stop }),
        );
        return { answer, isReplayed: false };
      }
      const stored = {
        project_id: projectId,
        key: idempotency.key,
        body_sha256: idempotency.bodySha256,
        request: `POST /v1/capabilities/${capability}/exec`,
      };
      // No capability name holds a colon, so that no two of them share a key.
      const key = `${projectId}:${capability}:${idempotency.key}`;
      return open.run(null, (stop) =>
        callOnce(stored, key, ({ lost, keeps }) =>
          execCapability({ projectId, capability, request, key, keeps, signal: stopWith(stop, lost) }),
        ),
      );
    },
    close: async () => {
      await open.close();
      keeper.stop();
    },
  };
}
