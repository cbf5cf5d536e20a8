/**
 * OpenTelemetry's packages ask that a resource be made by one of them, which would be a dependency for two strings. What
 * the SDK and the exporter use of one is this.
 */
import type { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

type Resource = NonNullable<NonNullable<ConstructorParameters<typeof NodeTracerProvider>[0]>['resource']>;

export function ownResource(attributes: Readonly<Record<string, string>>): Resource {
  const resource: Resource = {
    attributes: { ...attributes },
    merge: () => resource,
    getRawAttributes: () => Object.entries(attributes),
  };
  return resource;
}
