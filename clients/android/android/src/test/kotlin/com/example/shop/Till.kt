package com.example.shop

import android.content.Context
import svc.visitor.SvcCallback
import svc.visitor.SvcException
import svc.visitor.SvcIdentification
import svc.visitor.SvcOptions
import svc.visitor.SvcRequest
import svc.visitor.SvcVisitor
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit

/** All that a shrinker must keep of an app, as it keeps activities. */
class Till {
    /** The response, or the error's code and message. */
    fun identify(context: Context, endpoint: String, key: String): String {
        val reported = LinkedBlockingQueue<String>()
        val options = SvcOptions.Builder(key, endpoint).timeoutMs(60_000).collectMs(20_000).callbackExecutor { it.run() }.build()
        SvcVisitor.create(context, options).identify(SvcRequest.Builder().tag("t").action("log_in").build(), object : SvcCallback {
            override fun onSuccess(result: SvcIdentification) = reported.put(result.json)

            override fun onFailure(error: SvcException) = reported.put("${error.code}: ${error.message}")
        })
        return reported.poll(90, TimeUnit.SECONDS) ?: "no callback"
    }
}
