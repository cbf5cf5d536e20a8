/** The public API for authors of capabilities, imported as `@capstan/capability`. */

export { later, type SentResult, sendResult } from './answer-later.ts';
export { installPackages } from './bootstrap/packages.ts';
export { CallFailure, type CallFailureStatus } from './call-failure.ts';
export {
  type CallLogger,
  type Capability,
  type CapabilityDefinition,
  defineCapability,
  type ExecContext,
} from './define-capability.ts';
export type { Prerequisite, PrerequisiteHost } from './lifecycle/prerequisites.ts';
export { type InstanceOptions, type RunningInstance, startInstance } from './lifecycle/start-instance.ts';
export type { CallMedia } from './media/call-media.ts';
export { MediaReference } from './media/call-media.ts';
export { serveCapability } from './serve.ts';
export { readSettings, type Settings } from './settings.ts';
