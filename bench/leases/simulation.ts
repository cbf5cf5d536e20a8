/**
 * Many routers that send free calls to many instances, in virtual time: by a claim for each call, or with leased slots.
 * The rules of leases are those of the router (core/routing/slot-leases.ts). Simplified: routers know the held slots of
 * others as of the last poll, every statement takes about a millisecond, a router has one running statement of claims
 * and ends, and a call that finds no slot tries again after each poll.
 */
import {
  beginAsking,
  countCall,
  endAsking,
  endCall,
  giveUp,
  isOver,
  type LeaseFacts,
  leaseMs,
  leastDeclared,
  noTraffic,
  slotsToAsk,
  slotsToGrant,
} from '@capstan/core/routing/slot-leases';
import { createRandom, type Random } from '../shared/random.ts';
import { createTimeline, type Timeline } from './timeline.ts';

export interface World {
  readonly name: string;
  readonly routers: number;
  readonly instances: number;
  readonly slots: number;
  /** Instances that one router calls, in turn. */
  readonly known: number;
  readonly callsPerSecond: number;
  readonly callMs: number;
}

export interface Measured {
  readonly calls: number;
  /** From the arrival of a call to its request, ms, sorted. */
  readonly waits: readonly number[];
  readonly statements: number;
  readonly seconds: number;
  readonly leased: number;
  /** Means over time: slots that calls use, and slots that are held in the database. */
  readonly used: number;
  readonly held: number;
  /** The most calls at once on an instance, by its slots. */
  readonly most: number;
}

interface Instance {
  calls: number;
  claimed: number;
  readonly leases: Map<Router, { slots: number; untilMs: number }>;
}

interface Router {
  readonly targets: readonly number[];
  readonly facts: Map<number, LeaseFacts>;
  readonly queue: Call[];
  /** Ends of claims that go with the next statement. */
  ends: number[];
  records: number;
  isBusy: boolean;
  /** Calls of its own, by instance. */
  readonly own: Map<number, number>;
}

interface Call {
  readonly arrivedMs: number;
  target: number;
}

const statementMs = 1;
const pollMs = 250;
const tickMs = 20;

class Simulation {
  readonly #world: World;
  readonly #mayLease: boolean;
  readonly #random: Random;
  readonly #time: Timeline = createTimeline();
  readonly #instances: Instance[];
  readonly #routers: Router[];
  /** Held slots of each instance at the last poll. */
  #polled: Int32Array;
  readonly #waiting: (() => void)[] = [];
  /** Instances for whose slots calls wait: their holders see it with the next poll. */
  readonly #wanted = new Set<number>();
  readonly #waits: number[] = [];
  #statements = 0;
  #leasedCalls = 0;
  #most = 0;
  readonly #sums = { samples: 0, used: 0, held: 0 };
  #isMeasuring = false;

  constructor(world: World, mayLease: boolean) {
    this.#world = world;
    this.#mayLease = mayLease;
    this.#random = createRandom(7);
    this.#instances = Array.from({ length: world.instances }, () => ({
      calls: 0,
      claimed: 0,
      leases: new Map(),
    }));
    this.#polled = new Int32Array(world.instances);
    this.#routers = Array.from({ length: world.routers }, () => ({
      targets: Array.from({ length: world.known }, () => this.#random.below(world.instances)),
      facts: new Map(),
      queue: [],
      ends: [],
      records: 0,
      isBusy: false,
      own: new Map(),
    }));
  }

  run(warmMs: number, measuredMs: number): Measured {
    for (const router of this.#routers) {
      this.#arrive(router);
      if (this.#mayLease) this.#time.after(this.#random.uniform() * tickMs, () => this.#tick(router));
    }
    this.#poll();
    this.#time.runUntil(warmMs);
    this.#isMeasuring = true;
    this.#time.runUntil(warmMs + measuredMs);
    const { samples, used, held } = this.#sums;
    return {
      calls: this.#waits.length,
      waits: this.#waits.sort((a, b) => a - b),
      statements: this.#statements,
      seconds: measuredMs / 1_000,
      leased: this.#leasedCalls / Math.max(1, this.#waits.length),
      used: used / samples,
      held: held / samples,
      most: this.#most / this.#world.slots,
    };
  }

  #held({ claimed, leases }: Instance, except?: Router): number {
    let held = claimed;
    for (const [router, { slots, untilMs }] of leases) {
      if (router !== except && untilMs > this.#time.now()) held += slots;
    }
    return held;
  }

  #poll(): void {
    this.#polled = Int32Array.from(this.#instances, (instance) => this.#held(instance));
    if (this.#isMeasuring) {
      this.#sums.samples++;
      for (const [at, { calls }] of this.#instances.entries()) {
        this.#sums.used += calls;
        this.#sums.held += Math.max(calls, this.#polled[at] as number);
      }
    }
    for (const at of this.#wanted) this.#halve(at);
    this.#wanted.clear();
    for (const retry of this.#waiting.splice(0)) retry();
    this.#time.after(pollMs, () => this.#poll());
  }

  #halve(at: number): void {
    for (const { facts } of (this.#instances[at] as Instance).leases.keys()) {
      facts.set(at, giveUp(facts.get(at) ?? noTraffic, this.#time.now(), 'half'));
    }
  }

  #arrive(router: Router): void {
    const gapMs = 1_000 / (this.#world.callsPerSecond / this.#world.routers);
    this.#time.after(gapMs * this.#random.exponential(), () => {
      this.#arrive(router);
      this.#begin(router, { arrivedMs: this.#time.now(), target: 0 });
    });
  }

  /** Of two at random the one with fewer calls, as far as the router knows. */
  #choose({ targets, own }: Router): number {
    const pick = () => targets[this.#random.below(targets.length)] as number;
    const load = (at: number) => Math.max(this.#polled[at] as number, own.get(at) ?? 0);
    const [one, two] = [pick(), pick()];
    return load(one) <= load(two) ? one : two;
  }

  #begin(router: Router, call: Call): void {
    call.target = this.#choose(router);
    if (this.#mayLease && this.#world.slots >= leastDeclared) {
      const facts = router.facts.get(call.target) ?? noTraffic;
      const isServed = facts.used < facts.slots;
      router.facts.set(call.target, countCall(facts, this.#time.now(), isServed));
      if (isServed) {
        this.#work(router, call, true);
        return;
      }
    }
    router.queue.push(call);
    this.#send(router);
  }

  #work(router: Router, { arrivedMs, target }: Call, isLeased: boolean): void {
    const instance = this.#instances[target] as Instance;
    instance.calls++;
    router.own.set(target, (router.own.get(target) ?? 0) + 1);
    if (this.#isMeasuring) {
      this.#most = Math.max(this.#most, instance.calls);
      this.#waits.push(this.#time.now() - arrivedMs);
      if (isLeased) this.#leasedCalls++;
    }
    this.#time.after(this.#world.callMs * this.#random.exponential(), () => {
      instance.calls--;
      router.own.set(target, (router.own.get(target) ?? 1) - 1);
      if (!isLeased) {
        router.ends.push(target);
        this.#send(router);
        return;
      }
      const facts = router.facts.get(target) ?? noTraffic;
      router.facts.set(target, endCall(facts));
      if (router.records++ === 0) this.#time.after(tickMs, () => this.#record(router));
    });
  }

  #record(router: Router): void {
    router.records = 0;
    this.#count();
  }

  #count(): void {
    if (this.#isMeasuring) this.#statements++;
  }

  #statement(work: () => void): void {
    this.#count();
    this.#time.after(statementMs * (0.5 + 0.5 * this.#random.exponential()), work);
  }

  /** Claims and ends that arrive during a statement go with the next one. */
  #send(router: Router): void {
    if (router.isBusy || router.queue.length + router.ends.length === 0) return;
    router.isBusy = true;
    const claims = router.queue.splice(0, 64);
    const ends = router.ends.splice(0);
    this.#statement(() => {
      for (const target of ends) (this.#instances[target] as Instance).claimed--;
      for (const call of claims) this.#claim(router, call);
      router.isBusy = false;
      this.#send(router);
    });
  }

  #claim(router: Router, call: Call): void {
    const instance = this.#instances[call.target] as Instance;
    if (this.#held(instance) < this.#world.slots) {
      instance.claimed++;
      this.#work(router, call, false);
      return;
    }
    this.#wanted.add(call.target);
    this.#waiting.push(() => this.#begin(router, call));
  }

  #tick(router: Router): void {
    for (const [at, facts] of router.facts) {
      const now = this.#time.now();
      if (isOver(facts, now)) router.facts.delete(at);
      const asked = slotsToAsk(facts, now);
      if (asked !== null) this.#ask(router, at, asked);
    }
    this.#time.after(tickMs, () => this.#tick(router));
  }

  #ask(router: Router, at: number, asked: number): void {
    const instance = this.#instances[at] as Instance;
    const before = beginAsking(router.facts.get(at) ?? noTraffic, asked, this.#time.now());
    router.facts.set(at, before);
    const inUse = Math.max(before.slots, before.used);
    this.#statement(() => {
      const others = this.#held(instance, router);
      const granted = slotsToGrant({ asked, inUse, declared: this.#world.slots, others });
      if (granted === 0) instance.leases.delete(router);
      else instance.leases.set(router, { slots: granted, untilMs: this.#time.now() + leaseMs });
      router.facts.set(at, endAsking(router.facts.get(at) ?? noTraffic, asked, granted));
    });
  }
}

/** @param mayLease false: a claim for each call */
export function simulate(world: World, mayLease: boolean, measuredMs: number): Measured {
  return new Simulation(world, mayLease).run(1_000, measuredMs);
}
