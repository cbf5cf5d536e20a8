/** Runs in the thread of Node's module hooks. Packages installed in an author's folder take precedence over ours. */
import type { InitializeHook, ResolveHook } from 'node:module';

/** Module URLs by the name under which an author imports them. */
export type OwnModules = Readonly<Record<string, string>>;

let own: OwnModules = {};

export const initialize: InitializeHook<OwnModules> = (modules) => {
  own = modules;
};

export const resolve: ResolveHook = async (name, context, nextResolve) => {
  const address = Object.hasOwn(own, name) ? own[name] : undefined;
  if (address === undefined) return nextResolve(name, context);
  try {
    return await nextResolve(name, context);
  } catch {
    return nextResolve(address, context);
  }
};
