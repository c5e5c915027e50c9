/**
 * Stands in place of the package in Jest: `jest.mock("@svc/react-native", () => require("@svc/react-native/jest/mock"))`, or this file
 * in `moduleNameMapper`. Calls succeed with a fixed response and are recorded, as those of `jest.fn()`.
 */
const { SvcError } = require("../lib/api.js");

const plain = (work) => work;
const fn = typeof jest === "undefined" ? plain : (work) => jest.fn(work);
const response = { request_id: "00000000-0000-7000-8000-000000000000", visitor_id: "mock", visitor_is_new: false };

module.exports = {
  SvcError,
  configure: fn(() => undefined),
  identify: fn(async ({ signal } = {}) => {
    if (signal && signal.aborted) throw new SvcError("aborted", "The call was canceled.");
    return { ...response };
  }),
  setLocation: fn(() => undefined),
  forget: fn(async () => undefined),
};
