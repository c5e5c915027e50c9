import { answers } from "./questions.js";

self.postMessage(answers(self));
