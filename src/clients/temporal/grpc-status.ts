import { isGrpcServiceError } from '@temporalio/client';

/** Those that we act upon; all are in the specification of gRPC. */
const statuses = { invalidArgument: 3, notFound: 5, permissionDenied: 7, unimplemented: 12 } as const;

/** Whether a call of Temporal's own services ended by one of these. */
export function hasStatus(error: unknown, ...names: readonly (keyof typeof statuses)[]): boolean {
  return isGrpcServiceError(error) && names.some((name) => Number(error.code) === statuses[name]);
}
