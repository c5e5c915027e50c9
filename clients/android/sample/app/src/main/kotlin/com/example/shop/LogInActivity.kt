package com.example.shop

import android.app.Activity
import android.os.Bundle
import android.widget.Button
import android.widget.LinearLayout
import android.widget.TextView
import svc.visitor.SvcCallback
import svc.visitor.SvcException
import svc.visitor.SvcIdentification
import svc.visitor.SvcRequest

/** One button: identifies, and shows what came back. A real app sends the request id to its server. */
class LogInActivity : Activity() {
    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        val shown = TextView(this)
        val button = Button(this).apply { text = "Log in" }
        setContentView(LinearLayout(this).apply {
            orientation = LinearLayout.VERTICAL
            addView(button)
            addView(shown)
        })
        button.setOnClickListener {
            shown.text = "…"
            (application as Shop).visitor.identify(SvcRequest.Builder().tag("a random value").action("log_in").build(), object : SvcCallback {
                override fun onSuccess(result: SvcIdentification) {
                    shown.text = result.json
                }

                override fun onFailure(error: SvcException) {
                    shown.text = "${error.code}: ${error.message}"
                }
            })
        }
    }
}
