/** Runs in the thread of Node's module hooks: what an author's folder has installed goes before what is ours. */
import type { InitializeHook, ResolveHook } from 'node:module';

/** Addresses of modules by the name under which an author imports them. */
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
