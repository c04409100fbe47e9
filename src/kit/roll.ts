/**
 * What is under way, in the order of arrival: each member carries its neighbours itself, and has
 * none once it is taken out.
 *
 * A `Set` or `Map` whose members come and go by the thousand a second moves into a new table again
 * and again. The old table knows its successor, so one old table that the collector of young
 * objects has promoted keeps all later ones and whatever they held, until the next full collection:
 * under the load of `bench -- predict` half of all requests, and a full collection twice a second.
 */
export interface Member<T> {
  before: T | null;
  after: T | null;
}

export class Roll<T extends Member<T>> implements Iterable<T> {
  size = 0;
  private first: T | null = null;
  private last: T | null = null;

  /** The member must be in no roll. */
  add(member: T): void {
    member.before = this.last;
    if (this.last === null) this.first = member;
    else this.last.after = member;
    this.last = member;
    this.size += 1;
  }

  /** False for one that is in it no more; it must not be in another roll. */
  delete(member: T): boolean {
    const { before, after } = member;
    if (before === null && this.first !== member) return false;
    if (before === null) this.first = after;
    else before.after = after;
    if (after === null) this.last = before;
    else after.before = before;
    member.before = null;
    member.after = null;
    this.size -= 1;
    return true;
  }

  /** Oldest first; the member at hand may be taken out meanwhile. */
  *[Symbol.iterator](): Iterator<T> {
    for (let member = this.first; member !== null; ) {
      const { after } = member;
      yield member;
      member = after;
    }
  }
}
