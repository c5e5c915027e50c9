/** Whose a session is, in words. */
import type { Session } from "./wire.js";

/** The same for two sessions of one member or one key. */
export const ownerOf = ({ member, key }: Session): string | undefined => member?.id ?? key?.id;

export const nameOf = ({ member, key }: Session): string | undefined => member?.name ?? key?.name;

/** Such as `Ada, analyst` or `robot …x7Qa, admin`; `joint` joins the parts of a key's name. */
export const who = ({ member, key, role }: Session, joint = ""): string =>
  member ? `${member.name}, ${role}` : `${key?.name} …${joint}${key?.last4}, ${role}`;
